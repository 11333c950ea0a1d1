import { copyBytes } from '../../core/copy-bytes.ts'
import { ROOT_BYTES, SIGNATURE_BYTES } from '../../solana/shred/shred.ts'

/**
 * Signature checks on their way from the relay to the checking thread and back, in memory that both share. The relay alone submits requests, and
 * the checking thread alone sets verdicts, in the same order; neither waits for the other to take something.
 *
 *     header     Int32: see HEADER
 *     verdicts   one byte for each cell
 *     cells      root, signature and public key, CELL_BYTES each, used in turn
 *
 * `submitted` and `checked` count up and wrap around at 2^32, so the number of cells is a power of two.
 */
export type SignatureSubmitter = {
  /** Passes a check on; returns its number, or -1 when CHECKS_MAX wait. */
  submit(request: SignatureRequest): number
  /** The number of the oldest check whose verdict has come, or -1. */
  nextVerdict(): number
  /** Whether that signature is valid; removes the verdict. */
  takeVerdict(): boolean
  /** Whether a checking thread runs, as far as is known. */
  isAlive(): boolean
}

export type SignatureRequest = {
  readonly roots: Uint8Array
  rootAt: number
  readonly signatures: Uint8Array
  signatureAt: number
  key: Uint8Array
}

export type SignatureReader = {
  /** Sets the verdicts of all checks that wait, calls `onVerdict` after each, and returns how many there were. */
  read(isSigned: (root: Uint8Array, signature: Uint8Array, key: Uint8Array) => boolean, onVerdict: () => void): number
  /** Blocks the thread until there is a check, or for this time. */
  wait(timeoutMs: number): void
  setAlive(isAlive: boolean): void
}

/** Checks that wait at one time; a power of two. */
export const CHECKS_MAX = 256
const MASK = CHECKS_MAX - 1
const KEY_BYTES = 32
const SIGNATURE_IN_CELL = ROOT_BYTES
const KEY_IN_CELL = ROOT_BYTES + SIGNATURE_BYTES
const CELL_BYTES = ROOT_BYTES + SIGNATURE_BYTES + KEY_BYTES
/** What each side writes is in its own line of the processor's cache. */
const HEADER = { submitted: 0, checked: 16, isReaderSleeping: 17, isAlive: 18 } as const
const HEADER_BYTES = 128
const VERDICT = { signed: 1, forged: 2 } as const

export function createSignatureMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER_BYTES + CHECKS_MAX + CHECKS_MAX * CELL_BYTES)
}

function viewsOf(memory: SharedArrayBuffer) {
  return {
    header: new Int32Array(memory, 0, HEADER_BYTES / 4),
    verdicts: new Uint8Array(memory, HEADER_BYTES, CHECKS_MAX),
    cells: new Uint8Array(memory, HEADER_BYTES + CHECKS_MAX),
  }
}

export function openSignatureSubmitter(memory: SharedArrayBuffer): SignatureSubmitter {
  const { header, verdicts, cells } = viewsOf(memory)
  let submitted = Atomics.load(header, HEADER.submitted)
  // Those up to here are of a relay that has ended, and are not read.
  let taken = submitted
  return {
    submit({ roots, rootAt, signatures, signatureAt, key }) {
      if (((submitted - taken) | 0) >= CHECKS_MAX) return -1
      // The reader may still be busy with the checks of a relay that ended before.
      if (((submitted - Atomics.load(header, HEADER.checked)) | 0) >= CHECKS_MAX) return -1
      const number = submitted & MASK
      const at = number * CELL_BYTES
      copyBytes(roots, rootAt, rootAt + ROOT_BYTES, cells, at)
      copyBytes(signatures, signatureAt, signatureAt + SIGNATURE_BYTES, cells, at + SIGNATURE_IN_CELL)
      copyBytes(key, 0, KEY_BYTES, cells, at + KEY_IN_CELL)
      submitted = (submitted + 1) | 0
      Atomics.store(header, HEADER.submitted, submitted)
      if (Atomics.load(header, HEADER.isReaderSleeping) === 1) Atomics.notify(header, HEADER.submitted)
      return number
    },
    nextVerdict() {
      const done = (Atomics.load(header, HEADER.checked) - taken) | 0
      return done > 0 ? taken & MASK : -1
    },
    takeVerdict() {
      const isSigned = verdicts[taken & MASK] === VERDICT.signed
      taken = (taken + 1) | 0
      return isSigned
    },
    isAlive: () => Atomics.load(header, HEADER.isAlive) === 1,
  }
}

export function openSignatureReader(memory: SharedArrayBuffer): SignatureReader {
  const { header, verdicts, cells } = viewsOf(memory)
  let checked = Atomics.load(header, HEADER.checked)
  // node:crypto takes no views of shared memory.
  const cell = new Uint8Array(CELL_BYTES)
  const root = cell.subarray(0, ROOT_BYTES)
  const signature = cell.subarray(SIGNATURE_IN_CELL, KEY_IN_CELL)
  const key = cell.subarray(KEY_IN_CELL)
  return {
    read(isSigned, onVerdict) {
      let count = 0
      while (checked !== Atomics.load(header, HEADER.submitted)) {
        const number = checked & MASK
        copyBytes(cells, number * CELL_BYTES, (number + 1) * CELL_BYTES, cell, 0)
        verdicts[number] = isSigned(root, signature, key) ? VERDICT.signed : VERDICT.forged
        checked = (checked + 1) | 0
        Atomics.store(header, HEADER.checked, checked)
        onVerdict()
        count += 1
      }
      return count
    },
    wait(timeoutMs) {
      Atomics.store(header, HEADER.isReaderSleeping, 1)
      Atomics.wait(header, HEADER.submitted, checked, timeoutMs)
      Atomics.store(header, HEADER.isReaderSleeping, 0)
    },
    setAlive: (isAlive) => void Atomics.store(header, HEADER.isAlive, isAlive ? 1 : 0),
  }
}
