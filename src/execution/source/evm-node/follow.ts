import { type Backoff, createBackoff } from '../../../core/backoff.ts'
import type { Clock, Timer } from '../../../core/clock.ts'
import { messageOf } from '../../../core/error.ts'
import type { Random } from '../../../core/random.ts'
import type { BlockHead, EvmNodeClient, NodeBlock } from './client.ts'
import { RecordedHeads } from './recorded-heads.ts'

export type FollowOptions = {
  /** How often the node is polled for its head. */
  readonly pollMs: number
  /** Further behind than this, blocks are skipped and reported as a gap. */
  readonly behindMax: number
  /** How far back a reorganisation is followed. */
  readonly reorgMax: number
}

export const FOLLOW_DEFAULTS: FollowOptions = { pollMs: 1000, behindMax: 64, reorgMax: 128 }

/** Receives the blocks. */
export type FollowSink = {
  block(block: NodeBlock): void
  voted(block: BlockHead): void
  finalized(block: BlockHead): void
  /** Blocks were skipped: the next block does not follow the last one. */
  skipped(from: number, to: number): void
  /** Why the node cannot be followed; undefined when it can again. */
  failure(message: string | undefined): void
}

export type FollowDeps = {
  readonly client: Pick<EvmNodeClient, 'head' | 'headOf' | 'block'>
  readonly clock: Clock
  readonly random: Random
  readonly sink: FollowSink
}

const RETRY = { firstMs: 250, maxMs: 15_000 }

/**
 * Follows the head of a node by polling. One poll runs at a time; after a failure the next one is delayed with backoff. Blocks are
 * recorded in order. When a parent is not the last recorded block, the chain was reorganised, and the blocks of the new branch are
 * recorded from the fork on.
 */
export function followNode(options: FollowOptions, { client, clock, random, sink }: FollowDeps): AsyncDisposable {
  const backoff: Backoff = createBackoff(RETRY, random)
  /** The recorded branch, oldest first, without gaps. */
  const branch: BlockHead[] = []
  /** For the stages of blocks that are older than the branch. */
  const heads = new RecordedHeads()
  /** Where to continue when no block of the branch is canonical any more. */
  let lowestRemoved: number | undefined
  let votedNumber = -1
  let finalizedNumber = -1
  let timer: Timer | undefined
  let isClosed = false
  let running: Promise<void> = Promise.resolve()

  function arm(delayMs: number): void {
    if (!isClosed) timer = clock.setTimer(delayMs, () => void (running = run()))
  }

  async function run(): Promise<void> {
    try {
      await step()
      backoff.reset()
      if (!isClosed) sink.failure(undefined)
      arm(options.pollMs)
    } catch (error) {
      if (!isClosed) sink.failure(messageOf(error))
      arm(backoff.nextMs())
    }
  }

  async function step(): Promise<void> {
    const head = await client.head()
    let next = await findNext(head)
    if (head - next >= options.behindMax) {
      const to = head - 1
      sink.skipped(next, to)
      branch.length = 0
      lowestRemoved = undefined
      next = head
    }
    for (; next <= head && !isClosed; next++) {
      const block = await client.block(next)
      if (block === undefined || isClosed) return
      // The chain was reorganised during this poll: the next poll finds the fork.
      if (branch.length > 0 && block.parentHash !== branch.at(-1)?.hash) return
      sink.block(block)
      const recorded = { number: block.number, hash: block.hash, parentHash: block.parentHash }
      branch.push(recorded)
      heads.add(recorded)
      if (branch.length > options.reorgMax) branch.shift()
    }
    await reportStages()
  }

  /**
   * The number after the last recorded block that may still be part of the node's chain. Only another block of the same number shows that one is
   * not: several nodes may share the URL, and the one that responds may be behind, or not have a block that another reported as its head.
   */
  async function findNext(head: number): Promise<number> {
    while (branch.length > 0) {
      const last = branch.at(-1) as BlockHead
      const compared = branch.findLast(({ number }) => number <= head)
      const now = compared && (await client.headOf(compared.number))
      if (compared === undefined || now === undefined || now.hash === compared.hash) return last.number + 1
      lowestRemoved = compared.number
      for (const removed of branch.splice(branch.indexOf(compared))) heads.remove(removed)
    }
    // The fork is older than the recorded branch, or nothing was recorded yet.
    return lowestRemoved ?? head
  }

  async function reportStages(): Promise<void> {
    const safe = await client.headOf('safe')
    for (const block of safe === undefined ? [] : heads.branchOf(safe.hash, votedNumber)) {
      sink.voted(block)
      votedNumber = block.number
    }
    const finalized = await client.headOf('finalized')
    for (const block of finalized === undefined ? [] : heads.branchOf(finalized.hash, finalizedNumber)) {
      sink.finalized(block)
      finalizedNumber = block.number
    }
    heads.removeUpTo(finalizedNumber)
  }

  arm(0)
  return {
    async [Symbol.asyncDispose]() {
      isClosed = true
      timer?.cancel()
      await running
    },
  }
}
