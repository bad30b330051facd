// Annotations that look like ours and cannot be read; the others are nobody's business.
#define A(text) __attribute__((annotate(text)))
A("other") void other() {}
A("@critcal_path()") void misspelt() {}
A("@critical_path(pointcut='arond')") void wrong_value() {}
A("@critical_path") int no_parentheses() { return 3; }
A("@critical_path()") int variable = 3;
A("@critical_path()") void right() {}
A("@critical_path(pointcut=\"around\")") void never_defined();
int main() {}
