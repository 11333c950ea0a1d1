import { type Backoff, createBackoff } from '../../../core/backoff.ts'
import type { Clock, Timer } from '../../../core/clock.ts'
import { messageOf } from '../../../core/error.ts'
import type { Random } from '../../../core/random.ts'
import type { Hex } from '../../../evm/hex.ts'
import type { BlockHead, EvmNodeClient, NodeBlock } from './client.ts'

export type FollowOptions = {
  /** How often the node is asked for its head. */
  readonly pollMs: number
  /** Further behind than this, blocks are left out and the reader is told. */
  readonly behindMax: number
  /** How far back a reorganisation is followed. */
  readonly reorgMax: number
}

export const FOLLOW_DEFAULTS: FollowOptions = { pollMs: 1000, behindMax: 64, reorgMax: 128 }

/** Where the blocks go. */
export type FollowSink = {
  block(block: NodeBlock): void
  voted(block: BlockHead): void
  finalized(block: BlockHead): void
  /** Blocks were left out: what comes next does not follow what came before. */
  skipped(from: number, to: number): void
  /** Why nothing comes; undefined when it goes on. */
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
 * Follows the head of a node by asking again and again. One question is under way at a time; after a failure the next one waits
 * longer and longer. Blocks are taken in order; where a parent is not the block recorded before, the chain was reorganised and
 * the blocks of the new branch are recorded again from the fork on.
 */
export function followNode(options: FollowOptions, { client, clock, random, sink }: FollowDeps): AsyncDisposable {
  const backoff: Backoff = createBackoff(RETRY, random)
  /** The branch that was recorded, oldest first, without holes. */
  const branch: BlockHead[] = []
  /** Where to go on when nothing of the branch is left. */
  let lowestLeft: number | undefined
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
      lowestLeft = undefined
      next = head
    }
    for (; next <= head && !isClosed; next++) {
      const block = await client.block(next)
      if (block === undefined || isClosed) return
      // The node changed its mind while it was being asked: the next step finds the fork.
      if (branch.length > 0 && block.parentHash !== branch.at(-1)?.hash) return
      sink.block(block)
      branch.push({ number: block.number, hash: block.hash, parentHash: block.parentHash })
      if (branch.length > options.reorgMax) branch.shift()
    }
    await reportStages()
  }

  /** The number after the last recorded block that is still part of the node's chain. */
  async function findNext(head: number): Promise<number> {
    while (branch.length > 0) {
      const last = branch.at(-1) as BlockHead
      const now = last.number > head ? undefined : await client.headOf(last.number)
      if (now?.hash === last.hash) return last.number + 1
      lowestLeft = last.number
      branch.pop()
    }
    // The fork lies further back than is remembered, or nothing was recorded yet.
    return lowestLeft ?? head
  }

  async function reportStages(): Promise<void> {
    const isKnown = (hash: Hex): boolean => branch.some((block) => block.hash === hash)
    const safe = await client.headOf('safe')
    if (safe !== undefined && isKnown(safe.hash)) {
      for (const block of branch) if (block.number > votedNumber && block.number <= safe.number) sink.voted(block)
      votedNumber = Math.max(votedNumber, safe.number)
    }
    const finalized = await client.headOf('finalized')
    if (finalized === undefined || !isKnown(finalized.hash)) return
    for (const block of branch)
      if (block.number > finalizedNumber && block.number <= finalized.number) sink.finalized(block)
    finalizedNumber = Math.max(finalizedNumber, finalized.number)
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
