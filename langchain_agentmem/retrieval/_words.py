"""Word tables of the lexical analysis: stop words and irregular verbs, one table per language."""

from typing import Final

_ENGLISH_STOP_WORDS: Final = """
    a an the this that these those there here
    i me my mine myself we us our ours ourselves you your yours yourself
    he him his himself she her hers herself it its itself they them their theirs themselves
    am is are was were be been being do does did doing done have has had having
    can could shall should will would might must ought
    and or but nor so if then than because while as of at by for with about against between into
    through during to from in on off over under up down out
    not no only too very just also any some such own same both each
    who whom whose which what where when why how
    s t d ll m re ve don didn doesn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn
    ever according
"""

ENGLISH_STOP_WORDS: Final = frozenset(_ENGLISH_STOP_WORDS.split())
"""Function and question words: they say how something is asked, not what it is about."""

_ENGLISH_TIME_WORDS: Final = """
    yesterday today tonight tomorrow ago last next recently soon morning evening
    day days week weeks weekend month months year years
    monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
"""

ENGLISH_TIME_WORDS: Final = frozenset(_ENGLISH_TIME_WORDS.split()).union(
    map(str, range(1900, 2100))
)
"""Words that say when, years among them; `may` mostly is no month."""

_CJK_STOP_WORDS: Final = """
    什么时候 什么样 什么 怎么样 怎么 哪里 哪儿 哪个 哪位 哪 多少 请问 是不是 到底 来着
    的 了 啥 那 这 吗 呢 呀 啊 吧 嘛 何ですか ですか ますか
"""

CJK_STOP_WORDS: Final = tuple(sorted(_CJK_STOP_WORDS.split(), key=len, reverse=True))
"""Question words and particles of Chinese and Japanese, longest form first."""

_IRREGULAR_VERBS: Final = """
    arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became;
    begin began begun; bend bent; bite bit bitten; bleed bled; blow blew blown;
    break broke broken;
    breed bred; bring brought; build built; burn burnt; buy bought; catch caught; choose chose
    chosen; come came; creep crept; deal dealt; dig dug; draw drew drawn; dream dreamt;
    drink drank drunk;
    drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought;
    find found; flee fled; fly flew flown; forget forgot forgotten; forgive forgave forgiven;
    freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown;
    hang hung; hear heard; hide hid hidden; hold held; keep kept; kneel knelt; know knew known;
    lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent; light lit;
    lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung;
    rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent;
    shake shook shaken; shine shone; shoot shot; show shown; sing sang sung; sink sank sunk;
    sit sat; sleep slept; slide slid; speak spoke spoken; spend spent; spin spun; stand stood;
    steal stole stolen; stick stuck; strike struck; swear swore sworn; sweep swept; swim swam swum;
    swing swung; take took taken; teach taught; tear tore torn; tell told; think thought;
    throw threw thrown; understand understood; wake woke woken; wear wore worn; weave wove woven;
    weep wept; win won; write wrote written
"""

IRREGULAR_VERBS: Final[dict[str, str]] = {
    form: verb
    for entry in _IRREGULAR_VERBS.split(";")
    for verb, *forms in [entry.split()]
    for form in forms
}
"""Past form to base form, looked up before stemming, which cannot see that went is go."""

ENGLISH_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
"""Fixed here, because `strftime` would follow the machine's locale."""
