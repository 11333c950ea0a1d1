/*
 * The reference of bench/shreds.ts: reads packets from one UDP port in batches and sends each batch to N connected destinations with one
 * UDP_SEGMENT send per packet size. It reads only the length of a packet: no check, no dedupe, no caps. With JOIN 0 it reads 32 at a
 * time and passes the kernel a vector of packets; with JOIN 1 it makes the system calls of the relay: 48 at a time, copied into one buffer. With HASH 1 it
 * also computes what a check of the content cannot do without: SHA-256 of the packet up to its proof, and of one pair of nodes (libcrypto). It compares
 * nothing and checks no signature.
 *   shred-fanout PORT N FIRST_DESTINATION_PORT JOIN HASH
 * Prints a line with elapsed milliseconds, CPU milliseconds, and the packets in and out so far every 200 ms, and a last one at SIGTERM. Ends with its parent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define BATCH_PLAIN 32
#define BATCH 48
#define SLOT 2048
#define DATA_BYTES 1203
#define CODE_BYTES 1228
/* Behind the signature and before the proof of six entries and the retransmitter's part, with the prefix of a leaf. */
#define SIGNATURE_BYTES 64
#define PROOF_BYTES 120
#define PAIR_BYTES 66
#define DESTINATIONS_MAX 256
#define TELL_MS 200

static volatile sig_atomic_t stopped;
static void stop(int signal) { (void)signal; stopped = 1; }

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double tell(unsigned long received, unsigned long sent) {
  double at = now_ms();
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
  printf("{\"ms\":%.1f,\"cpuMs\":%.1f,\"in\":%lu,\"out\":%lu}\n", at, cpu, received, sent);
  fflush(stdout);
  return at;
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static unsigned long send_group(int fd, struct iovec *vectors, size_t vector_count, size_t count, uint16_t size) {
  if (count == 0) return 0;
  char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
  struct msghdr header = {.msg_iov = vectors, .msg_iovlen = vector_count, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *segment = CMSG_FIRSTHDR(&header);
  segment->cmsg_level = SOL_UDP;
  segment->cmsg_type = UDP_SEGMENT;
  segment->cmsg_len = CMSG_LEN(sizeof size);
  memcpy(CMSG_DATA(segment), &size, sizeof size);
  return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? 0 : count;
}

typedef unsigned char *(*sha256_fn)(const unsigned char *data, size_t bytes, unsigned char *digest);

static sha256_fn load_sha256(void) {
  void *library = dlopen("libcrypto.so.3", RTLD_NOW);
  sha256_fn found = library == NULL ? NULL : (sha256_fn)dlsym(library, "SHA256");
  if (found == NULL) { fputs("libcrypto.so.3 with SHA256 is needed\n", stderr); exit(1); }
  return found;
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  int join = atoi(argv[4]);
  sha256_fn sha256 = atoi(argv[5]) ? load_sha256() : NULL;
  unsigned char digest[32];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
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

  static char packets[BATCH][SLOT], joined_data[BATCH * DATA_BYTES], joined_code[BATCH * CODE_BYTES];
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
  double told = now_ms();
  int turn = 0;
  while (!stopped) {
    if (now_ms() - told >= TELL_MS) told = tell(received, sent);
    int got = recvmmsg(in, headers, join ? BATCH : BATCH_PLAIN, MSG_WAITFORONE, NULL);
    if (got <= 0) continue;
    received += (unsigned long)got;
    size_t data_count = 0, code_count = 0;
    for (int i = 0; sha256 != NULL && i < got; i++) {
      const unsigned char *bytes = (const unsigned char *)packets[i] + SIGNATURE_BYTES;
      sha256(bytes, headers[i].msg_len - SIGNATURE_BYTES - PROOF_BYTES, digest);
      sha256(bytes, PAIR_BYTES, digest);
    }
    for (int i = 0; i < got; i++) {
      if (headers[i].msg_len < CODE_BYTES) {
        if (join) memcpy(joined_data + DATA_BYTES * data_count, packets[i], DATA_BYTES);
        else data[data_count] = (struct iovec){packets[i], DATA_BYTES};
        data_count++;
      } else {
        if (join) memcpy(joined_code + CODE_BYTES * code_count, packets[i], CODE_BYTES);
        else code[code_count] = (struct iovec){packets[i], CODE_BYTES};
        code_count++;
      }
    }
    if (join) {
      data[0] = (struct iovec){joined_data, DATA_BYTES * data_count};
      code[0] = (struct iovec){joined_code, CODE_BYTES * code_count};
    }
    /* Another destination is the first one each time, as in the relay. */
    turn = (turn + 1) % count;
    for (int i = 0; i < count; i++) {
      int to = out[(turn + i) % count];
      sent += send_group(to, data, join ? 1 : data_count, data_count, DATA_BYTES);
      sent += send_group(to, code, join ? 1 : code_count, code_count, CODE_BYTES);
    }
  }
  tell(received, sent);
  return 0;
}
