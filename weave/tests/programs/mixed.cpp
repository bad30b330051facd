// Throws through mixed.c; and a header's function in two objects.
extern "C" int c_pass(void (*call)());
int second_object(int);

__attribute__((annotate("@critical_path()"))) inline int in_header(int a) { return a + 1; }
int (*kept)(int) = in_header;

//= all: +c_pass !c_pass +in_header -in_header +in_header -in_header
int main() {
    try {
        c_pass([] { throw 1; });
        return 1;
    } catch (int) {
    }
    return kept(0) - 1 + second_object(0) - 1;
}
