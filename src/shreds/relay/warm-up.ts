import type { Clock } from '../../core/clock.ts'
import type { Sha256 } from '../../core/sha256.ts'
import { openUdpRehearsalPort } from '../../platform/udp/rehearsal-port.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSigningKey } from '../../solana/crypto/ed25519.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { SLOT_AT } from '../../solana/shred/shred.ts'
import type { RelayOptions } from './protocol.ts'
import { runRelay } from './relay.ts'

export type WarmUpDeps = { readonly sha256: Sha256; readonly clock: Pick<Clock, 'monotonicMs'> }

/** Packets that pass before the relay starts, in batches of 1 to BATCH_MAX. */
const PACKETS = 6000
const BATCH_MAX = 8
/** A slow machine starts with code that is not compiled to the end. */
const TIME_MS_MAX = 1000
const DESTINATIONS = 4
const FIRST_SLOT = 1000
const SIGNED_BYTES = 120_000

/** Runs another relay on synthetic shreds, without a socket, so that the code is compiled before the first packet comes. Nothing is sent, nothing counted. */
export async function warmUp(options: RelayOptions, { sha256, clock }: WarmUpDeps): Promise<void> {
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

  async function rehearse(signatures: RelayOptions['signatures'], count: number): Promise<void> {
    let given = 0
    const next = (): Uint8Array[] => {
      const batch: Uint8Array[] = []
      for (const length = 1 + (given % BATCH_MAX); batch.length < length && given < count; given++) {
        const packet = packets[given % packets.length] as Uint8Array
        // A packet that comes again is of a later slot, so that it is new.
        if (signatures === 'off') packet[SLOT_AT] = (FIRST_SLOT + Math.floor(given / packets.length)) & 0xff
        batch.push(packet)
      }
      return batch
    }
    using port = openUdpRehearsalPort({ ...options.port, listen: { host: '0.0.0.0', port: 0 } }, { clock, next })
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
        checks: undefined,
        decodedInput: undefined,
      },
      {
        port,
        clock,
        sha256,
        post() {},
        poll: () => (given >= count || clock.monotonicMs() > endMs ? { kind: 'stop' } : undefined),
      },
    )
  }

  if (options.signatures === 'auto') await rehearse('auto', packets.length)
  await rehearse('off', PACKETS)
}
