/* Hazard: file names with quotes, newlines, control bytes, backslashes and bytes that are not UTF-8.
 * Holds: the trace stays valid and the names come back byte by byte. */
#include "hazard.h"

int main(void) {
    work("quote\"d", 1);
    work("new\nline", 2);
    work("back\\slash", 3);
    work("bell\a tab\t del\x7f", 4);
    work("latin \xe9\xff\xfe cut \xe2\x82", 5);
    work("euro \xe2\x82\xac clef \xf0\x9d\x84\x9e", 6);
    work("surrogate \xed\xb2\x80 text \\udc80", 7);
    return 0;
}
