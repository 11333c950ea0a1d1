import { SHA256_INPUT_BYTES, type Sha256 } from '../../core/sha256.ts'

/**
 * The function of the OpenSSL library that Node itself contains and exports. A call makes no object and takes less than half the time of `crypto.hash`.
 * Undefined where the function is not exported, or does not compute the test vector.
 */
export async function loadNativeSha256(): Promise<Sha256 | undefined> {
  try {
    const { default: koffi } = await import('koffi')
    const call = koffi.load(null).func('void SHA256(uintptr_t, size_t, uintptr_t)')
    const buffer = new ArrayBuffer(SHA256_INPUT_BYTES + 32)
    const from = Number(koffi.address(buffer))
    const to = from + SHA256_INPUT_BYTES
    const sha256: Sha256 = {
      input: new Uint8Array(buffer, 0, SHA256_INPUT_BYTES),
      output: new Uint8Array(buffer, SHA256_INPUT_BYTES, 32),
      run: (length) => void call(from, length, to),
    }
    return isWorking(sha256) ? sha256 : undefined
  } catch {
    return undefined
  }
}

/** The digest of `abc` (FIPS 180-2, appendix B.1). */
const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

function isWorking({ input, output, run }: Sha256): boolean {
  input.set([0x61, 0x62, 0x63])
  run(3)
  return Buffer.from(output).toString('hex') === ABC
}
