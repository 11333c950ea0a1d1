import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import { Keypair, SystemProgram, Transaction } from '@solana/web3.js'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { decodeMessage, decodeTransaction } from './decode-transaction.ts'
import { RpcError } from './errors.ts'
import { refusal } from './test-refusal.ts'

const payer = Keypair.fromSeed(new Uint8Array(32).fill(7))
const transfer = new Transaction({ feePayer: payer.publicKey, recentBlockhash: '11111111111111111111111111111111' })
transfer.add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: payer.publicKey, lamports: 1 }))
transfer.sign(payer)
const wire = transfer.serialize()
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

const DESERIALIZE = 'failed to deserialize solana_transaction::versioned::VersionedTransaction: '

describe('decodeTransaction', () => {
  it('accepts both encodings and ignores trailing bytes', () => {
    assert.equal(decodeTransaction(base64(wire), 'base64').wire.length, wire.length)
    assert.equal(decodeTransaction(encodeBase58(wire), 'base58').transaction.version, 'legacy')
    assert.equal(decodeTransaction(base64(Buffer.concat([wire, Buffer.alloc(9)])), 'base64').wire.length, wire.length)
  })

  it('reads the old encoding binary as base58', () => {
    assert.deepEqual(decodeTransaction(encodeBase58(wire), 'binary'), decodeTransaction(encodeBase58(wire), 'base58'))
    for (const text of ['a0', '1'.repeat(1684), '1'.repeat(1233)]) {
      assert.equal(
        refusal(() => decodeTransaction(text, 'binary')),
        refusal(() => decodeTransaction(text, 'base58')),
      )
    }
  })

  it("refuses invalid text with Agave's messages", () => {
    assert.equal(
      refusal(() => decodeTransaction('', 'jsonParsed')),
      'unsupported encoding: jsonParsed. Supported encodings: base58, base64',
    )
    assert.equal(
      refusal(() => decodeTransaction('a0', 'base58')),
      "invalid base58 encoding: InvalidCharacter { character: '0', index: 1 }",
    )
    assert.equal(
      refusal(() => decodeTransaction('a!==', 'base64')),
      'invalid base64 encoding: InvalidByte(1, 33)',
    )
    assert.equal(
      refusal(() => decodeTransaction('AAA', 'base64')),
      'invalid base64 encoding: InvalidPadding',
    )
    assert.equal(
      refusal(() => decodeTransaction('A'.repeat(1648), 'base64')),
      'base64 encoded solana_transaction::versioned::VersionedTransaction too large: 1648 bytes (max: encoded/raw 1644/1232)',
    )
    assert.equal(
      refusal(() => decodeTransaction('1'.repeat(1684), 'base58')),
      'base58 encoded solana_transaction::versioned::VersionedTransaction too large: 1684 bytes (max: encoded/raw 1683/1232)',
    )
    assert.equal(
      refusal(() => decodeTransaction('1'.repeat(1233), 'base58')),
      'decoded solana_transaction::versioned::VersionedTransaction too large: 1233 bytes (max: 1232 bytes)',
    )
  })

  it("refuses invalid bytes with Agave's messages", () => {
    const signed = (...message: number[]) => base64(Uint8Array.from([1, ...Buffer.alloc(64), ...message]))
    assert.equal(
      refusal(() => decodeTransaction(signed(4, 5, 6), 'base64')),
      `${DESERIALIZE}io error: failed to fill whole buffer`,
    )
    assert.equal(
      refusal(() => decodeTransaction('', 'base64')),
      `${DESERIALIZE}io error: failed to fill whole buffer`,
    )
    assert.equal(
      refusal(() => decodeTransaction(signed(0xfe, 1, 0, 1), 'base64')),
      `${DESERIALIZE}invalid value: integer \`126\`, expected a valid transaction message version`,
    )
    assert.equal(
      refusal(() => decodeTransaction(signed(1, 0, 0, 0x81, 0), 'base64')),
      `${DESERIALIZE}invalid value: alias encoding, expected strict form encoding`,
    )
    const twoSigners = Uint8Array.from(wire)
    twoSigners[65] = 2
    assert.equal(
      refusal(() => decodeTransaction(base64(twoSigners), 'base64')),
      'invalid transaction: Transaction failed to sanitize accounts offsets correctly',
    )
  })

  it('accepts up to 256 accounts: how many may be locked is checked later', () => {
    const loading = (count: number) => {
      const message = [
        1,
        0,
        1,
        2,
        ...new Uint8Array(64).fill(3),
        ...new Uint8Array(32),
        0,
        1,
        ...new Uint8Array(32).fill(4),
      ]
      const indexes = Array.from({ length: count }, (_, index) => index)
      const length = count < 128 ? [count] : [(count & 0x7f) | 0x80, count >> 7]
      return base64(Uint8Array.from([1, ...new Uint8Array(64), 0x80, ...message, ...length, ...indexes, 0]))
    }
    assert.equal(
      decodeTransaction(loading(254), 'base64').transaction.addressTableLookups[0]?.writableIndexes.length,
      254,
    )
    assert.equal(
      refusal(() => decodeTransaction(loading(255), 'base64')),
      'invalid transaction: Transaction failed to sanitize accounts offsets correctly',
    )
  })

  it('throws only RpcError, whichever byte is changed or cut', () => {
    for (let at = 0; at < wire.length; at++) {
      for (const value of [0, 1, 0x7f, 0x80, 0x81, 0xff]) {
        const changed = Uint8Array.from(wire)
        changed[at] = value
        for (const bytes of [changed, changed.subarray(0, at)]) {
          try {
            decodeTransaction(base64(bytes), 'base64')
          } catch (error) {
            assert(error instanceof RpcError)
          }
        }
      }
    }
  })
})

describe('decodeMessage', () => {
  it('reads a message without signatures', () => {
    const message = decodeMessage(base64(transfer.serializeMessage()))
    assert.equal(message.header.numRequiredSignatures, 1)
    assert.equal(message.instructions.length, 1)
    assert.equal(
      refusal(() => decodeMessage('AQ==')),
      'failed to deserialize solana_message::versions::VersionedMessage: io error: failed to fill whole buffer',
    )
  })
})
