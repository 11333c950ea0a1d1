/*
 * The yardstick of bench/shreds.ts: takes packets from one UDP port in batches and sends each batch to N connected destinations with one
 * UDP_SEGMENT send per size of packet. It looks at nothing but the length of a packet: no check, no dedupe, no caps.
 *   shred-fanout PORT N FIRST_DESTINATION_PORT
 * Prints packets in and out when it gets SIGTERM.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define BATCH 32
#define SLOT 2048
#define DATA_BYTES 1203
#define CODE_BYTES 1228
#define DESTINATIONS_MAX 256

static volatile sig_atomic_t stopped;
static void stop(int signal) { (void)signal; stopped = 1; }

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static unsigned long send_group(int fd, struct iovec *vectors, size_t count, uint16_t size) {
  if (count == 0) return 0;
  char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
  struct msghdr header = {.msg_iov = vectors, .msg_iovlen = count, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *segment = CMSG_FIRSTHDR(&header);
  segment->cmsg_level = SOL_UDP;
  segment->cmsg_type = UDP_SEGMENT;
  segment->cmsg_len = CMSG_LEN(sizeof size);
  memcpy(CMSG_DATA(segment), &size, sizeof size);
  return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? 0 : count;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int count = atoi(argv[2]);
  if (count < 1 || count > DESTINATIONS_MAX) return 2;
  int in = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = loopback(atoi(argv[1]));
  if (bind(in, (struct sockaddr *)&address, sizeof address) < 0) { perror("bind"); return 1; }
  int buffer = 25 * 1024 * 1024;
  setsockopt(in, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
  struct timeval wait = {.tv_usec = 10000};
  setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  int out[DESTINATIONS_MAX];
  int send_buffer = 4 * 1024 * 1024;
  for (int i = 0; i < count; i++) {
    out[i] = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(out[i], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    setsockopt(out[i], SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer, sizeof send_buffer);
    address = loopback(atoi(argv[3]) + i);
    if (connect(out[i], (struct sockaddr *)&address, sizeof address) < 0) { perror("connect"); return 1; }
  }

  static char packets[BATCH][SLOT];
  static struct sockaddr_storage names[BATCH];
  struct iovec vectors[BATCH], data[BATCH], code[BATCH];
  struct mmsghdr headers[BATCH];
  memset(headers, 0, sizeof headers);
  for (int i = 0; i < BATCH; i++) {
    vectors[i] = (struct iovec){.iov_base = packets[i], .iov_len = SLOT};
    headers[i].msg_hdr.msg_iov = &vectors[i];
    headers[i].msg_hdr.msg_iovlen = 1;
    headers[i].msg_hdr.msg_name = &names[i];
    headers[i].msg_hdr.msg_namelen = sizeof names[i];
  }
  signal(SIGTERM, stop);
  signal(SIGINT, stop);
  puts("ready");
  fflush(stdout);
  unsigned long received = 0, sent = 0;
  while (!stopped) {
    int got = recvmmsg(in, headers, BATCH, MSG_WAITFORONE, NULL);
    if (got <= 0) continue;
    received += (unsigned long)got;
    size_t data_count = 0, code_count = 0;
    for (int i = 0; i < got; i++) {
      if (headers[i].msg_len < CODE_BYTES) data[data_count++] = (struct iovec){packets[i], DATA_BYTES};
      else code[code_count++] = (struct iovec){packets[i], CODE_BYTES};
    }
    for (int i = 0; i < count; i++) {
      sent += send_group(out[i], data, data_count, DATA_BYTES);
      sent += send_group(out[i], code, code_count, CODE_BYTES);
    }
  }
  printf("{\"in\":%lu,\"out\":%lu}\n", received, sent);
  return 0;
}
