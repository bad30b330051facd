/* Hazard: a descriptor arrives over a socket, with no open in this process.
 * Holds: I/O on it is attributed to the file it is, not to the file that had the number before. */
#include "hazard.h"
#include <sys/socket.h>

static void pass(int socket, int fd) {
    char byte = 'x', control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    MUST(sendmsg(socket, &message, 0) == 1);
}

static int receive(int socket) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    MUST(recvmsg(socket, &message, 0) == 1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

int main(void) {
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        pass(pair[1], open("passed.bin", O_CREAT | O_WRONLY, 0644));
        _exit(0);
    }
    int decoy = open("decoy.bin", O_CREAT | O_WRONLY, 0644);
    MUST(decoy >= 0 && close(decoy) == 0);
    int fd = receive(pair[0]);
    MUST(fd == decoy);
    for (int i = 0; i < 10; i++) MUST(write(fd, "0123456789", 10) == 10);
    reap(child, 0);
    return 0;
}
