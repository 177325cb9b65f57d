"""Steps: the logic of every memory, written once as generators that yield effects.

A step touches no store, model, clock or event loop itself. It *yields what it needs* and *returns
its result*; the two drivers in `drivers` perform the effects, one with blocking calls and one with
`await`. So sync and async cannot drift, and a test can drive a step by hand with plain values.
"""
