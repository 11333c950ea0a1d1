import { closeSync } from 'node:fs'

/**
 * The sockets that a thread has opened by system calls, in memory that it shares with the thread that started it. When a thread is terminated or runs out
 * of memory, Node closes its own sockets, and no code of the thread runs that would close these: their ports would stay taken.
 */
export type DescriptorList = {
  add(fd: number): void
  /** To be called before the descriptor is closed: then its number may be that of another file. */
  remove(fd: number): void
}

/** One byte for each descriptor: as many as a process can have (fs.nr_open). Pages that are not used take no memory. Larger ones are not listed. */
const DESCRIPTORS_MAX = 1 << 20

export function createDescriptorMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(DESCRIPTORS_MAX)
}

export function openDescriptorList(memory: SharedArrayBuffer): DescriptorList {
  const isOpen = new Uint8Array(memory)
  return {
    add(fd) {
      isOpen[fd] = 1
    },
    remove(fd) {
      isOpen[fd] = 0
    },
  }
}

/** Closes what a thread left open. It must have ended. */
export function closeDescriptors(memory: SharedArrayBuffer): void {
  const isOpen = new Uint8Array(memory)
  for (let fd = isOpen.indexOf(1); fd >= 0; fd = isOpen.indexOf(1, fd + 1)) {
    isOpen[fd] = 0
    closeSync(fd)
  }
}
