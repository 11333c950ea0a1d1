import { hash } from 'node:crypto'
import {
  padSha256,
  putSha256Word,
  SHA256_DIGEST_BYTES,
  SHA256_INITIAL_STATE,
  SHA256_LANE_BYTES,
  type Sha256Lanes,
} from '../../core/sha256.ts'

/** As many as AVX2 has; with SSSE3 the library makes two turns of four. */
const LANES = 8
/** Two groups of four lanes, as the library counts them. */
const GROUPS = 2
/** The library's SHA256_MB_CTX: the words of the state, of each the eight lanes. */
const STATE_BYTES: number = SHA256_INITIAL_STATE.length * LANES * 4
/** Its HASH_DESC: a pointer and an int, with padding. */
const DESCRIPTION_BYTES = 16
const BLOCKS_AT = 8
/** The vectors of the state are aligned. */
const ALIGNMENT = 64

/**
 * `sha256_multi_block` of the OpenSSL library that Node itself contains, which TLS uses for several records at once: on a processor without SHA instructions
 * eight leaves of a merkle tree take 7.4 µs together and 3.5 µs each alone. It is exported on x64 only; arm64 has SHA instructions. The function is not part of the
 * library's public interface, so its result is compared with `crypto.hash` before it is used. Undefined where it is missing or wrong.
 */
export async function loadSha256Lanes(): Promise<Sha256Lanes | undefined> {
  try {
    const { default: koffi } = await import('koffi')
    const call = koffi.load(null).func('void sha256_multi_block(uintptr_t, uintptr_t, int)')
    const size = STATE_BYTES + LANES * (DESCRIPTION_BYTES + SHA256_LANE_BYTES)
    const buffer = new ArrayBuffer(size + ALIGNMENT)
    const address = Number(koffi.address(buffer))
    const stateAt = (ALIGNMENT - (address % ALIGNMENT)) % ALIGNMENT
    const descriptionsAt = stateAt + STATE_BYTES
    const inputsAt = descriptionsAt + LANES * DESCRIPTION_BYTES
    const state = new Int32Array(buffer, stateAt, STATE_BYTES >> 2)
    const view = new DataView(buffer)
    const inputs = new Uint8Array(buffer, inputsAt, LANES * SHA256_LANE_BYTES)
    const outputs = new Uint8Array(LANES * SHA256_DIGEST_BYTES)
    const lengths = new Int32Array(LANES)
    for (let lane = 0; lane < LANES; lane++)
      view.setBigUint64(
        descriptionsAt + lane * DESCRIPTION_BYTES,
        BigInt(address + inputsAt + lane * SHA256_LANE_BYTES),
        true,
      )
    const blocksOf = new Int32Array(buffer, descriptionsAt, (LANES * DESCRIPTION_BYTES) >> 2)
    const lanes: Sha256Lanes = {
      lanes: LANES,
      inputs,
      lengths,
      outputs,
      run(used) {
        for (let lane = 0; lane < LANES; lane++)
          // A lane of no blocks is left out.
          blocksOf[(lane * DESCRIPTION_BYTES + BLOCKS_AT) >> 2] =
            lane < used ? padSha256(inputs, lane * SHA256_LANE_BYTES, lengths[lane] as number) : 0
        for (let at = 0; at < state.length; at++) state[at] = SHA256_INITIAL_STATE[(at / LANES) | 0] as number
        call(address + stateAt, address + descriptionsAt, GROUPS)
        for (let lane = 0; lane < used; lane++)
          for (let word = 0; word < SHA256_INITIAL_STATE.length; word++)
            putSha256Word(state[word * LANES + lane] as number, outputs, lane * SHA256_DIGEST_BYTES + 4 * word)
      },
    }
    return isWorking(lanes) ? lanes : undefined
  } catch {
    return undefined
  }
}

/** Inputs of one block and of several, and lanes that are not used. */
const CHECKED_LENGTHS = [1045, 0, 55, 56, 1070, 64, 981, 1006] as const

function isWorking({ inputs, lengths, outputs, run }: Sha256Lanes): boolean {
  lengths.set(CHECKED_LENGTHS)
  for (let at = 0; at < inputs.length; at++) inputs[at] = (at * 7) & 0xff
  const expected = CHECKED_LENGTHS.map((length, lane) => {
    const from = lane * SHA256_LANE_BYTES
    return hash('sha256', inputs.subarray(from, from + length), 'hex')
  }).join('')
  const textOf = (used: number): string => Buffer.from(outputs.subarray(0, used * SHA256_DIGEST_BYTES)).toString('hex')
  run(LANES)
  if (textOf(LANES) !== expected) return false
  run(LANES - 3)
  return expected.startsWith(textOf(LANES - 3))
}
