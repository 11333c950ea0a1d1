import { Buffer } from 'node:buffer'
import { type SigningKey, signEd25519 } from '../crypto/ed25519.ts'
import { compactU16Length, writeCompactU16 } from './compact-u16.ts'

export type AccountMeta = { readonly address: Uint8Array; readonly signer: boolean; readonly writable: boolean }

export type Instruction = {
  readonly programId: Uint8Array
  readonly accounts: readonly AccountMeta[]
  readonly data: Uint8Array
}

export type LegacyMessage = {
  readonly feePayer: Uint8Array
  readonly recentBlockhash: Uint8Array
  readonly instructions: readonly Instruction[]
}

export const SYSTEM_PROGRAM: Uint8Array = new Uint8Array(32)

/** The signed bytes of a legacy transaction. Accounts are merged, and ordered as the header requires. */
export function buildLegacyMessage({ feePayer, recentBlockhash, instructions }: LegacyMessage): Uint8Array {
  const keys = orderAccounts(feePayer, instructions)
  const indexOf = new Map(keys.map((key, index) => [idOf(key.address), index]))
  const index = (address: Uint8Array) => indexOf.get(idOf(address)) as number

  let length = 3 + compactU16Length(keys.length) + keys.length * 32 + 32 + compactU16Length(instructions.length)
  for (const { accounts, data } of instructions) {
    length += 1 + compactU16Length(accounts.length) + accounts.length + compactU16Length(data.length) + data.length
  }

  const message = new Uint8Array(length)
  message[0] = keys.filter((key) => key.signer).length
  message[1] = keys.filter((key) => key.signer && !key.writable).length
  message[2] = keys.filter((key) => !key.signer && !key.writable).length
  let at = writeCompactU16(message, 3, keys.length)
  for (const key of keys) {
    message.set(key.address, at)
    at += 32
  }
  message.set(recentBlockhash, at)
  at = writeCompactU16(message, at + 32, instructions.length)
  for (const { programId, accounts, data } of instructions) {
    message[at++] = index(programId)
    at = writeCompactU16(message, at, accounts.length)
    for (const account of accounts) message[at++] = index(account.address)
    at = writeCompactU16(message, at, data.length)
    message.set(data, at)
    at += data.length
  }
  return message
}

/** The wire format of a signed legacy or v0 message. Throws a TypeError when a required signer is missing. */
export function signMessage(message: Uint8Array, signers: readonly SigningKey[]): Uint8Array {
  const headerAt = (message[0] as number) >= 0x80 ? 1 : 0
  const required = message[headerAt] as number
  // The key count of a message that fits a packet takes one byte.
  const keysAt = headerAt + 4
  const wire = new Uint8Array(1 + required * 64 + message.length)
  wire[0] = required
  for (let i = 0; i < required; i++) {
    const address = message.subarray(keysAt + i * 32, keysAt + (i + 1) * 32)
    const signer = signers.find((key) => Buffer.compare(key.publicKey, address) === 0)
    if (signer === undefined) throw new TypeError(`the signer of key ${i} is missing`)
    wire.set(signEd25519(message, signer), 1 + i * 64)
  }
  wire.set(message, 1 + required * 64)
  return wire
}

/** System Program instruction 2: u32 discriminant, u64 lamports. */
export function transferInstruction(transfer: { from: Uint8Array; to: Uint8Array; lamports: bigint }): Instruction {
  const data = new Uint8Array(12)
  const view = new DataView(data.buffer)
  view.setUint32(0, 2, true)
  view.setBigUint64(4, transfer.lamports, true)
  return {
    programId: SYSTEM_PROGRAM,
    accounts: [
      { address: transfer.from, signer: true, writable: true },
      { address: transfer.to, signer: false, writable: true },
    ],
    data,
  }
}

/** The data of a Memo instruction is the text; its accounts, if any, must sign. */
export function memoInstruction(programId: Uint8Array, text: string, signers: readonly Uint8Array[] = []): Instruction {
  return {
    programId,
    accounts: signers.map((address) => ({ address, signer: true, writable: false })),
    data: new TextEncoder().encode(text),
  }
}

/** Each address once with the strongest role it has anywhere: writable signers (fee payer first), signers, writable, the rest. */
function orderAccounts(feePayer: Uint8Array, instructions: readonly Instruction[]): AccountMeta[] {
  const merged = new Map<string, AccountMeta>()
  const add = ({ address, signer, writable }: AccountMeta) => {
    const known = merged.get(idOf(address))
    merged.set(idOf(address), {
      address,
      signer: signer || known?.signer === true,
      writable: writable || known?.writable === true,
    })
  }
  add({ address: feePayer, signer: true, writable: true })
  for (const { programId, accounts } of instructions) {
    for (const account of accounts) add(account)
    add({ address: programId, signer: false, writable: false })
  }
  const rank = (meta: AccountMeta) => (meta.signer ? 0 : 2) + (meta.writable ? 0 : 1)
  return [...merged.values()].sort((a, b) => rank(a) - rank(b))
}

function idOf(address: Uint8Array): string {
  return Buffer.from(address.buffer, address.byteOffset, address.length).toString('latin1')
}
