#!/bin/sh
# The command line, from an import to the receipt of what was erased.
set -eu
here=$(dirname "$0")
AGENTMEM_DB=${AGENTMEM_DB:-$(mktemp -d)/memory.sqlite}
export AGENTMEM_DB

agentmem import "$here/memorybank/memory_bank_en.json"
agentmem search "Which park did I visit?" --user Emily --limit 2
agentmem inspect --user Emily --why "my favorite novel" --limit 1
agentmem chat --user Emily --model none --message "I adopted a cat called Mango."
agentmem export --user Emily | tail -n 1
agentmem forget --user Emily --matching "Mango" --yes
agentmem doctor
