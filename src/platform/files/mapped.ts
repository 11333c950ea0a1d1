import { fstatSync } from 'node:fs'
import { messageOf } from '../../core/error.ts'

/**
 * A memory-mapped file: writes of another process are visible without a system call. Every read and write is followed by a barrier, so
 * that they take effect in the order of the calls, also on processors that reorder them.
 *
 * Access to a part that was truncated under the mapping ends the process with SIGBUS: readers check the length of the file first
 * (`ring-file/reader.ts`). Where files may be truncated, positional reads are safe and give the same results.
 */
export type MappedFile = {
  readonly sizeBytes: number
  read(position: number, target: Uint8Array, targetAt: number, length: number): void
  write(position: number, bytes: Uint8Array): void
  /** Writes eight bytes atomically, after all earlier writes. `position` is a multiple of 8. */
  storeU64(position: number, value: number): void
  close(): void
}

/** System calls that Node lacks: mmap, and the advisory lock that the writer of a ring holds. */
export type FileMapper =
  | {
      readonly ok: true
      /** Maps an open file with its current length. The descriptor may be closed afterwards. */
      map(descriptor: number, options: { isWritable: boolean }): MappedFile
      /** The current length of an open file. Takes a third of the time of fstat and allocates nothing. */
      bytesOf(descriptor: number): number
      /** Takes flock(2) without waiting; false when another process holds it. Closing the descriptor releases it. */
      tryLock(descriptor: number): boolean
    }
  | { readonly ok: false; readonly reason: string }

// Values of <sys/mman.h>, <unistd.h> and <sys/file.h>, the same on all Linux architectures.
const PROT_READ = 1
const PROT_WRITE = 2
const MAP_SHARED = 1
const SEEK_END = 2
const LOCK_EX = 2
const LOCK_NB = 4
const EWOULDBLOCK = 11
/** The return value of a failed mmap. */
const MAP_FAILED = 2n ** 64n - 1n

/** Loads the foreign-function interface. Where it does not load, returns the reason; callers then use positional reads and writes. */
export async function loadFileMapper(load = () => import('koffi')): Promise<FileMapper> {
  try {
    const { default: koffi } = await load()
    const libc = koffi.load('libc.so.6')
    const mmap = libc.func('uintptr_t mmap(void *, size_t, int, int, int, int64_t)')
    const munmap = libc.func('int munmap(uintptr_t, size_t)')
    const lseek = libc.func('int64_t lseek(int, int64_t, int)')
    const flock = libc.func('int flock(int, int)')
    return {
      ok: true,
      map(descriptor, { isWritable }) {
        const sizeBytes = Number(fstatSync(descriptor, { bigint: true }).size)
        const protection = isWritable ? PROT_READ | PROT_WRITE : PROT_READ
        const address: number | bigint = mmap(null, sizeBytes, protection, MAP_SHARED, descriptor, 0)
        if (BigInt.asUintN(64, BigInt(address)) === MAP_FAILED) {
          throw new Error(`a file of ${sizeBytes} bytes cannot be mapped (error ${koffi.errno()})`)
        }
        return createMappedFile(koffi.view(address, sizeBytes), () => void munmap(address, sizeBytes))
      },
      // All reads give their position, so moving the file offset is harmless. A failure is below 0: no bytes.
      bytesOf: (descriptor) => Number(lseek(descriptor, 0, SEEK_END)),
      tryLock(descriptor) {
        if (flock(descriptor, LOCK_EX | LOCK_NB) === 0) return true
        const code = koffi.errno()
        if (code === EWOULDBLOCK) return false
        throw new Error(`a file cannot be locked (error ${code})`)
      },
    }
  } catch (error) {
    return { ok: false, reason: `files cannot be mapped here: ${messageOf(error)}` }
  }
}

function createMappedFile(memory: ArrayBuffer, unmap: () => void): MappedFile {
  const sizeBytes = memory.byteLength
  // Replaced on close: access to memory that is no longer mapped would crash the process.
  let bytes = new Uint8Array(memory)
  let words = new BigUint64Array(memory, 0, Math.floor(sizeBytes / 8))
  const fence = createFence()
  return {
    sizeBytes,
    read(position, target, targetAt, length) {
      const there = Math.max(0, Math.min(length, bytes.length - position))
      if (there > 0) target.set(bytes.subarray(position, position + there), targetAt)
      if (there < length) target.fill(0, targetAt + there, targetAt + length)
      fence()
    },
    write(position, given) {
      bytes.set(given, position)
      fence()
    },
    storeU64(position, value) {
      Atomics.store(words, position / 8, BigInt(value))
      fence()
    },
    close() {
      if (bytes.length === 0) return
      bytes = new Uint8Array(0)
      words = new BigUint64Array(0)
      unmap()
    },
  }
}

/**
 * A full memory barrier. A sequentially consistent store orders what comes before it, a load what comes after it; the load is not
 * reordered before the store, so together they order everything.
 */
function createFence(): () => void {
  const word = new Int32Array(new SharedArrayBuffer(4))
  return () => {
    Atomics.store(word, 0, 1)
    Atomics.load(word, 0)
  }
}
