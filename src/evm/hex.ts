/** Lower-case hex with the prefix 0x. */
export type Hex = `0x${string}`

export function toHex(bytes: Uint8Array, from = 0, to = bytes.length): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('hex')}`
}

export function fromHex(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.startsWith('0x') ? hex.slice(2) : hex, 'hex'))
}

/** A number as a JSON-RPC quantity: no leading zeros. */
export function toQuantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`
}
