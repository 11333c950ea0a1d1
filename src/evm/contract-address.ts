import { fromHex, type Hex, toHex } from './hex.ts'
import { keccak256 } from './keccak256.ts'

/** Address of a contract made by a transaction: the last 20 bytes of the hash of the RLP list (sender, nonce). */
export function createdAddress(sender: Hex, nonce: bigint): Hex {
  const senderBytes = fromHex(sender)
  const nonceBytes = encodeNonce(nonce)
  const list = Uint8Array.of(0x80 + senderBytes.length, ...senderBytes, ...nonceBytes)
  return toHex(keccak256(Uint8Array.of(0xc0 + list.length, ...list)), 12)
}

/** RLP of an integer: a small one is itself, zero is the empty string, others have their length in front. */
function encodeNonce(nonce: bigint): Uint8Array {
  if (nonce === 0n) return Uint8Array.of(0x80)
  if (nonce < 0x80n) return Uint8Array.of(Number(nonce))
  const digits = nonce.toString(16)
  const bytes = fromHex(digits.length % 2 === 0 ? digits : `0${digits}`)
  return Uint8Array.of(0x80 + bytes.length, ...bytes)
}
