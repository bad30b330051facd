# shellcheck shell=bash
# Runs stages and prints a table at the end: wall and CPU time of each, beside its budget. Sourced by .ci/run and tools/weekly.sh.
#
#   stages_begin LOGS BUDGETS     where the output of each stage is kept, and a file with a line `NAME SECONDS` for each budget
#   stage NAME COMMAND…           runs one; a failed stage does not hide the others
#   stages_end                    prints the table; the status is 0 only if all passed
#
# Machines are shared and noisy: a stage over its budget is listed, but does not fail.

stages_begin() {
    stage_logs=$1
    stage_budgets=$2
    stage_rows=()
    stage_over=()
    stage_failed=0
    stage_began=$SECONDS
    mkdir -p "$stage_logs"
}

# Seconds of CPU time that ended children of this shell have used so far: cutime and cstime of its own line.
cpu_seconds() {
    awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%d", ($14 + $15) / tick }' /proc/$$/stat
}

stage_row() {
    local name=$1 verdict=$2 wall=$3 cpu=$4 budget
    budget=$(awk -v name="$name" '$1 == name { print $2 }' "$stage_budgets")
    stage_rows+=("$(printf '%-9s %-6s %6d s %6d s %6s s' "$name" "$verdict" "$wall" "$cpu" "${budget:--}")")
    if [ -n "$budget" ] && [ "$wall" -gt "$budget" ]; then
        stage_over+=("$name ($wall s of $budget s)")
    fi
}

stage() {
    local name=$1 start=$SECONDS cpu verdict=ok
    cpu=$(cpu_seconds)
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    if ! "$@" 2>&1 | tee "$stage_logs/$name.log"; then
        verdict=FAILED
        stage_failed=1
    fi
    stage_row "$name" "$verdict" $((SECONDS - start)) $(($(cpu_seconds) - cpu))
}

stages_end() {
    stage_row total "$([ "$stage_failed" = 0 ] && echo ok || echo FAILED)" $((SECONDS - stage_began)) "$(cpu_seconds)"
    printf '\n== summary (%d cores)\n' "$(nproc)"
    printf '%-9s %-6s %8s %8s %8s\n' stage result wall cpu budget
    printf '%s\n' "${stage_rows[@]}"
    [ ${#stage_over[@]} -eq 0 ] || printf 'over budget: %s\n' "$(printf '%s, ' "${stage_over[@]}" | sed 's/, $//')"
    return "$stage_failed"
}
