import { openUdpWarmUpPort } from '../../platform/udp/warm-up-port.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSigningKey } from '../../solana/crypto/ed25519.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { SLOT_AT } from '../../solana/shred/shred.ts'
import { createInputMemory, openInputReader } from '../decoded/input-ring.ts'
import { HELD_PACKETS_MAX } from './held-packets.ts'
import type { RelayOptions } from './protocol.ts'
import { type RelayDeps, runRelay } from './relay.ts'
import { createSignatureMemory, openSignatureReader } from './signature-ring.ts'

export type WarmUpDeps = Pick<RelayDeps, 'sha256' | 'lanes' | 'clock'>

/** Packets that pass in a round without signatures, in batches of 1 to BATCH_MAX. */
const PACKETS = 3000
const BATCH_MAX = 8
/** Rounds of each kind, each with a new relay: V8 discards code that was compiled for the functions of one instance only. */
const ROUNDS = 4
/** A slow machine starts with code that is not compiled to the end. */
const TIME_MS_MAX = 1000
const DESTINATIONS = 4
const FIRST_SLOT = 1000
const SIGNED_BYTES = 240_000
/** More than pass between two calls of `next`. */
const DECODED_SHREDS = 1024

/**
 * Runs other relays on synthetic shreds, without a socket, so that the code is compiled before the first packet comes. Nothing is sent, nothing counted. Returns how
 * many shreds passed: those that are dropped would warm the wrong code.
 */
export async function warmUp(options: RelayOptions, { sha256, lanes, clock }: WarmUpDeps): Promise<number> {
  const leader = createSigningKey(new Uint8Array(32).fill(1))
  const { sets } = makeShreds({
    slot: FIRST_SLOT,
    parentSlot: FIRST_SLOT - 1,
    version: 0,
    batches: [new Uint8Array(SIGNED_BYTES)],
    chainedRoot: new Uint8Array(32),
    leader,
  })
  const packets = sets.flatMap(({ data, code }) => [...data, ...code])
  const identities = [encodeBase58(leader.publicKey)]
  const endMs = clock.monotonicMs() + TIME_MS_MAX
  let passed = 0

  async function runRound(signatures: RelayOptions['signatures'], count: number, round: number): Promise<void> {
    let given = 0
    // In the first round the relay checks signatures itself, then as with a checking thread, which is this one.
    const signatureMemory = signatures === 'auto' && round > 0 ? createSignatureMemory() : undefined
    const reader = signatureMemory && openSignatureReader(signatureMemory)
    reader?.setAlive(true)
    // As with an engine that has read everything, where there is one.
    const decodedInput = options.decodedInput && createInputMemory(DECODED_SHREDS)
    const decoded = decodedInput && openInputReader(decodedInput)
    const next = (): Uint8Array[] => {
      reader?.read(isSigned, ignore)
      decoded?.discard()
      const batch: Uint8Array[] = []
      for (const length = 1 + (given % BATCH_MAX); batch.length < length && given < count; given++) {
        const packet = packets[given % packets.length] as Uint8Array
        // A packet that comes again is of a later slot, so that it is new.
        if (signatures === 'off') packet[SLOT_AT] = (FIRST_SLOT + Math.floor(given / packets.length)) & 0xff
        batch.push(packet)
      }
      return batch
    }
    using port = openUdpWarmUpPort(
      { ...options.port, listen: { host: '0.0.0.0', port: 0 }, spareCells: signatureMemory && HELD_PACKETS_MAX },
      { clock, next, isSecondKind: round % 2 === 1 },
    )
    await runRelay(
      {
        ...options,
        version: 0,
        signatures,
        leaders: [{ fromSlot: 0, toSlot: 2 * FIRST_SLOT, identities }],
        destinations: Array.from({ length: DESTINATIONS }, (_, at) => ({
          subscriptionId: String(at),
          ip: '127.0.0.1',
          port: 1 + at,
        })),
        signatureMemory,
        decodedInput,
      },
      {
        port,
        clock,
        sha256,
        lanes,
        post(message) {
          if (message.kind === 'report') passed += message.counts.relayed
        },
        poll: () => (given >= count || clock.monotonicMs() > endMs ? { kind: 'stop' } : undefined),
      },
    )
  }

  for (let round = 0; round < ROUNDS; round++) {
    if (options.signatures === 'auto') await runRound('auto', packets.length, round)
    await runRound('off', PACKETS, round)
    for (const packet of packets) packet[SLOT_AT] = FIRST_SLOT & 0xff
  }
  return passed
}

const isSigned = (): boolean => true
const ignore = (): void => {}
