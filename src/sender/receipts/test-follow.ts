import { createManualClock } from '../../core/clock.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import { createDispatch, type Path } from '../dispatch/dispatch.ts'
import { startFollow } from './follow.ts'
import type { AttemptReport, Receipt } from './receipt.ts'
import { createReceipts } from './receipts.ts'
import { receiptOf } from './test-receipt.ts'

type Status = { slot: number; err: unknown; confirmationStatus: string } | null

type RigOptions = {
  readonly resendMs: number
  readonly endMs: number
  readonly receiptsMax?: number
  /** So much passes with each reading of the clock. */
  readonly readMs?: number
}

/** For tests: receipts, dispatch and follow on a manual clock, with a node that responds as the test configures. */
export function followRig(options: RigOptions = { resendMs: 2000, endMs: 60_000 }) {
  const manual = createManualClock()
  let readings = 0
  const clock = { ...manual, monotonicMs: () => manual.monotonicMs() + readings++ * (options.readMs ?? 0) }
  const node = {
    slot: 100,
    statuses: new Map<string, Status>(),
    isValid: true,
    /** The slot of the node that is asked about blockhashes. */
    validSlot: 100 as number | undefined,
    height: 90,
    isUp: true,
    /** How long a response about a blockhash takes. */
    validMs: 0,
    /** How long a response about statuses takes. */
    statusMs: 0,
  }
  /** The calls of the node, and how many about blockhashes ran at once. */
  const calls: Record<string, number> = {}
  let checking = 0
  let checkingMax = 0
  const best = { slot: 100 }
  const callNode = async (method: string, params: readonly unknown[]) => {
    if (!node.isUp) return undefined
    calls[method] = (calls[method] ?? 0) + 1
    if (method === 'getSignatureStatuses') {
      if (node.statusMs > 0) await new Promise<void>((resolve) => clock.setTimer(node.statusMs, resolve))
      return {
        context: { slot: node.slot },
        value: (params[0] as string[]).map((one) => node.statuses.get(one) ?? null),
      }
    }
    if (method !== 'isBlockhashValid') return node.height
    if (node.validMs > 0) {
      checkingMax = Math.max(checkingMax, ++checking)
      await new Promise<void>((resolve) => clock.setTimer(node.validMs, resolve))
      checking -= 1
    }
    return { context: { slot: node.validSlot }, value: node.isValid }
  }
  const settled: string[] = []
  const confirmed: string[] = []
  const receipts = createReceipts(
    {
      receiptsMax: options.receiptsMax ?? 10,
      knownSignaturesMax: 1000,
      keepMs: 600_000,
      waitersMax: 2,
      waitersPerAddressMax: 2,
    },
    {
      clock,
      onSettled: (receipt) => settled.push(`${receipt.signature} ${receipt.state}`),
      onConfirmed: ({ signature, landed }) => confirmed.push(`${signature} ${JSON.stringify(landed?.error)}`),
    },
  )
  const sent: string[] = []
  const path: Path = {
    name: 'path',
    isOpen: true,
    hasSpare: true,
    send(job, report) {
      sent.push(job.body)
      report({ to: 'node', response: 'taken', message: '' })
    },
  }
  const attempts: AttemptReport[] = []
  const dispatch = createDispatch(
    { resendMs: options.resendMs, endMs: options.endMs, resendsPerSecond: 1000 },
    {
      paths: [path],
      receipts,
      clock,
      slotMs: () => 400,
      onAttempt: (report) => attempts.push(report),
      onThrown() {},
    },
  )
  const replaced: string[] = []
  const ws = { subscribe: () => undefined } as unknown as Upstream['ws']
  const follow = startFollow({
    receipts,
    callNode,
    ws,
    clock,
    bestSlot: () => best.slot,
    slotMs: () => 400,
    onReplaced: ({ signature, state }) => replaced.push(`${signature} ${state}`),
  })
  return {
    clock,
    node,
    best,
    calls,
    checkingMax: () => checkingMax,
    receipts,
    dispatch,
    sent,
    settled,
    confirmed,
    replaced,
    accept(signature: string, blockhash = 'blockhash'): Receipt {
      const receipt = receiptOf(signature, { acceptedMonotonicMs: clock.monotonicMs(), blockhash })
      receipts.add(receipt)
      dispatch.start(receipt)
      return receipt
    },
    [Symbol.dispose]() {
      follow[Symbol.dispose]()
      dispatch[Symbol.dispose]()
      receipts[Symbol.dispose]()
    },
  }
}
