// Compiled for a GPU.
__attribute__((annotate("@critical_path()"))) int on_device(int a) { return a; }
