#!/bin/sh
# One case of PerfFlowAspect's own test scripts, in their steps: run the program, look for its file, append ` {}]`, ask jq.
#
#   case.sh FILE LEAVES COMMAND…
#
# FILE is a pattern of the shell in which HOST stands for the name of this host. LEAVES says what the command must leave:
#   verbose, compact   the file, with 24 or 12 events of bar, bas and foo
#   object             the same as verbose, in an object
#   something          the file
#   two                two of them
#   nothing            no file of PerfFlowAspect's at all
set -eu
file=$(printf %s "$1" | sed "s/HOST/$(hostname)/")
leaves=$2
shift 2
"$@"

count() {
    # shellcheck disable=SC2086  # a pattern
    ls -1 $file 2>/dev/null | wc -l
}

# One object more than there are events: the one that is appended.
sane() {
    # shellcheck disable=SC2086  # a pattern
    cp $file sanity
    echo "$2" >>sanity
    jq . sanity >/dev/null
    found=$(jq "$3 | length" sanity)
    [ "$found" -eq "$1" ] || {
        echo "case.sh: $found objects, not $1" >&2
        exit 1
    }
    jq "$3[].name" sanity | sort | uniq >names
    printf '"bar"\n"bas"\n"foo"\nnull\n' | diff - names
    rm -f sanity names
}

case $leaves in
nothing)
    ! ls perfflow.* 2>/dev/null
    exit
    ;;
two) wanted=2 ;;
*) wanted=1 ;;
esac
[ "$(count)" -eq $wanted ] || {
    echo "case.sh: $(count) files are called $file, not $wanted; there are:" >&2
    ls >&2
    exit 1
}
case $leaves in
verbose) sane 25 ' {}]' '.' ;;
compact) sane 13 ' {}]' '.' ;;
object) sane 25 ' {}]}' '.traceEvents' ;;
esac
# shellcheck disable=SC2086  # a pattern
rm $file
