// The other object with in_header().
__attribute__((annotate("@critical_path()"))) inline int in_header(int a) { return a + 1; }
int (*volatile also_kept)(int) = in_header;
int second_object(int a) { return also_kept(a); }
