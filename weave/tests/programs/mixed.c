// C that exceptions pass through, compiled with -fexceptions.
__attribute__((annotate("@critical_path()"))) int c_pass(void (*call)(void)) {
    call();
    return 1;
}
