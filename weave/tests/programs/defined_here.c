// The definition behind the inline one of ways_out.c, which is used when that is not inlined.
__attribute__((annotate("@critical_path()"))) int defined_here(int a) { return a + 1; }
