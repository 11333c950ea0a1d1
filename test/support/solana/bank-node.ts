import { createSeededRandom, type Random, randomInt } from '../../../src/core/random.ts'
import type { GrpcCall } from '../../../src/platform/grpc/call.ts'
import { GrpcCode } from '../../../src/platform/grpc/status.ts'
import type { ChainBlock } from '../../../src/solana/chain-block.ts'
import { SlotStatus, SubscribeUpdateSchema } from '../../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../../src/solana/geyser/protobuf.ts'
import { geyserBytesOf } from '../../../src/solana/geyser/test-block.ts'
import { blockJsonOf } from '../../../src/solana/json/test-block.ts'
import { type FakeNode, type FakeResponse, startFakeNode } from '../../faults/fake-node.ts'
import type { HistorySlot } from './bank-history.ts'

/** A node that plays a history of banks over Geyser and JSON-RPC, with bank ids of its own. */
export type BankNode = AsyncDisposable & {
  readonly node: FakeNode
  /** Plays the slot at this position of the history. */
  play(at: number): void
  /** Ends its streams, as a node that restarts. */
  endStreams(): void
}

const DROPPED_PERCENT = 10
const NOT_AVAILABLE = '{"code":-32004,"message":"Block not available for slot"}'
const SKIPPED = '{"code":-32007,"message":"Slot was skipped, or missing due to ledger jump to recent snapshot"}'

type Message = Uint8Array

/** `isNamed`: sends bank ids, as with the new consensus. */
export async function startBankNode(
  history: readonly HistorySlot[],
  { seed, isNamed = true }: { seed: number; isNamed?: boolean },
): Promise<BankNode> {
  const random = createSeededRandom(seed)
  const node = await startFakeNode(history[0]?.slot ?? 0)
  const calls = new Set<GrpcCall>()
  // Beyond 2^53, to show that ids are read exactly.
  let nextId = 2n ** 60n + BigInt(randomInt(random, 2 ** 30))
  const ids = new Map<string, bigint>()
  /** By position: whether this node takes the misleading block for confirmed until the slot is final. */
  const isMisled = history.map(
    ({ misleading, finalAt }, at) => misleading !== undefined && finalAt > at && flip(random),
  )
  const positions = new Map(history.map(({ slot }, at) => [slot, at]))
  let now = -1

  node.onGrpcCall = (call) => {
    call.sendHeaders()
    call.onMessage(() => calls.add(call))
    call.onClose(() => calls.delete(call))
  }
  node.respond = (method, params): FakeResponse | undefined => {
    const [first, second, third] = params as [number, unknown, unknown]
    if (method === 'getBlock') return getBlock(first, commitmentOf(second))
    if (method === 'getBlocks') {
      const slots = history.map(({ slot }) => slot).filter((slot) => slot >= first && slot <= (second as number))
      return { result: JSON.stringify(slots.filter((slot) => blockAt(slot, commitmentOf(third)) !== undefined)) }
    }
    return undefined
  }

  function blockAt(slot: number, commitment: string): ChainBlock | undefined {
    const at = positions.get(slot)
    const entry = at === undefined ? undefined : history[at]
    if (at === undefined || entry === undefined || at > now) return undefined
    if (entry.finalAt <= now) return entry.final
    if (commitment === 'finalized') return undefined
    return isMisled[at] === true ? entry.misleading : entry.final
  }

  function getBlock(slot: number, commitment: string): FakeResponse {
    const block = blockAt(slot, commitment)
    if (block !== undefined) return { result: JSON.stringify(blockJsonOf(block)) }
    const entry = history[positions.get(slot) ?? -1]
    return { error: entry !== undefined && entry.finalAt <= now ? SKIPPED : NOT_AVAILABLE }
  }

  function idOf({ blockhash }: ChainBlock): bigint | undefined {
    if (!isNamed) return undefined
    let id = ids.get(blockhash)
    if (id === undefined) ids.set(blockhash, (id = nextId++))
    return id
  }

  function slotUpdate(block: ChainBlock, status: SlotStatus): Message {
    const bankId = idOf(block)
    const value = {
      slot: BigInt(block.slot),
      parent: BigInt(block.parentSlot),
      status,
      ...(bankId === undefined ? {} : { bankId }),
      ...(status === SlotStatus.SLOT_DEAD ? { deadError: 'bank replaced' } : {}),
    }
    return encodeMessage(SubscribeUpdateSchema, { filters: ['slots'], updateOneof: { case: 'slot', value } })
  }

  function blockUpdate(block: ChainBlock): Message[] {
    return randomInt(random, 100) < DROPPED_PERCENT ? [] : [geyserBytesOf(block, idOf(block))]
  }

  /** While the slot is at the tip. */
  function whenMade({ final, losers, misleading }: HistorySlot, at: number): Message[] {
    const banks = [...losers, ...(final === undefined ? [] : [final])]
    const created = shuffled(random, banks).flatMap((bank) => [
      slotUpdate(bank, SlotStatus.SLOT_CREATED_BANK),
      slotUpdate(bank, SlotStatus.SLOT_PROCESSED),
    ])
    const shown = isMisled[at] === true ? misleading : final
    if (shown === undefined) return created
    const isConfirmed = flip(random) ? [slotUpdate(shown, SlotStatus.SLOT_CONFIRMED)] : []
    return [...created, ...shuffled(random, [...blockUpdate(shown), ...isConfirmed])]
  }

  /** When it becomes final: its status, the end of its other banks, and its block where another one was shown. */
  function whenFinal({ final, losers }: HistorySlot, at: number): Message[] {
    // Without ids a node cannot name the bank that is dead.
    const dead = losers.filter(() => isNamed && flip(random)).map((bank) => slotUpdate(bank, SlotStatus.SLOT_DEAD))
    if (final === undefined) return dead
    const block = isMisled[at] === true && flip(random) ? blockUpdate(final) : []
    const both = flip(random) ? [slotUpdate(final, SlotStatus.SLOT_CONFIRMED)] : []
    return shuffled(random, [...dead, ...block, ...both, slotUpdate(final, SlotStatus.SLOT_FINALIZED)])
  }

  return {
    node,
    play(at) {
      const entry = history[at] as HistorySlot
      now = at
      node.slot = entry.slot
      const messages = whenMade(entry, at)
      history.forEach((each, position) => {
        if (each.finalAt === at && position <= at) messages.push(...whenFinal(each, position))
      })
      for (const message of messages) for (const call of calls) call.send(message)
    },
    endStreams() {
      for (const call of calls) call.end({ code: GrpcCode.unavailable, message: 'the node restarts' })
      calls.clear()
    },
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  }
}

function flip(random: Random): boolean {
  return randomInt(random, 2) === 0
}

function shuffled<Item>(random: Random, items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, key: random.float() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item)
}

function commitmentOf(config: unknown): string {
  return (config as { commitment?: string } | undefined)?.commitment ?? 'finalized'
}
