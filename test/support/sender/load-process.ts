import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type LoadResponse, openSenderLoad, type SenderLoad, sendTransactionBody } from './load.ts'
import { NODE_BLOCKHASH } from './node.ts'
import { tipped, walletOf } from './start.ts'

/** The only argument of the load process, as JSON. */
export type LoadTask = {
  readonly url: string
  /** Source addresses. */
  readonly addresses: readonly string[]
  /** Per address. */
  readonly connections: number
  readonly transactions: number
  /** Requests per second, without waiting for responses; undefined sends the next request after the previous response. */
  readonly perSecond?: number
}

export type LoadReport = {
  taken: number
  perAddressPerSecond: number
  checkDelayMsMax: number
  /** The first few responses that are neither accepted nor a valid 429. */
  other: number
  others: string[]
  seconds: number
}

const OTHERS_MAX = 10
const FEWER = '10'

/**
 * Signs its transactions, then sends them when `run` is called. A separate process with low priority, so that it takes no CPU time from the server
 * that is measured.
 */
export async function startLoadProcess(task: LoadTask): Promise<AsyncDisposable & { run(): Promise<LoadReport> }> {
  const child = fork(import.meta.filename, [JSON.stringify(task)], {
    execPath: 'nice',
    execArgv: ['-n', FEWER, process.execPath],
  })
  await once(child, 'message')
  return {
    async run() {
      child.send('go')
      const [report] = (await once(child, 'message')) as [LoadReport]
      return report
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return
      child.kill()
      await once(child, 'exit')
    },
  }
}

if (import.meta.main) {
  const task = JSON.parse(process.argv[2] ?? '') as LoadTask
  const bodies = task.addresses.map((_, at) => {
    const wallet = walletOf(at)
    return Array.from({ length: task.transactions }, (_, n) =>
      sendTransactionBody(tipped(wallet, NODE_BLOCKHASH, `${at} ${n}`)),
    )
  })
  process.send?.('ready')
  await once(process, 'message')
  const report = await sendAll(task, bodies)
  process.send?.(report)
  await once(process, 'disconnect')
}

async function sendAll(task: LoadTask, bodies: readonly string[][]): Promise<LoadReport> {
  const report: LoadReport = {
    taken: 0,
    perAddressPerSecond: 0,
    checkDelayMsMax: 0,
    other: 0,
    others: [],
    seconds: 0,
  }
  const startedMs = performance.now()
  const post = async (load: SenderLoad, body: string) => note(report, await load.post(body))
  using loads = new DisposableStack()
  await Promise.all(
    bodies.map(async (own, at) => {
      const load = loads.use(openSenderLoad(task.url, task.connections, task.addresses[at]))
      if (task.perSecond === undefined) {
        const left = own.values()
        const pump = async () => {
          for (const body of left) await post(load, body)
        }
        await Promise.all(Array.from({ length: task.connections }, pump))
        return
      }
      const responses: Promise<void>[] = []
      for (const [n, body] of own.entries()) {
        const waitMs = startedMs + (n * 1000) / task.perSecond - performance.now()
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
        responses.push(post(load, body))
      }
      await Promise.all(responses)
    }),
  )
  report.seconds = (performance.now() - startedMs) / 1000
  return report
}

/** Counts an accepted transaction, or a valid 429 that names its limit. */
function note(report: LoadReport, { status, head, body }: LoadResponse): void {
  const limit = /"code":-32429,.*"limit":"(perAddressPerSecond|checkDelayMsMax)"/.exec(body)?.[1]
  if (status === 200 && body.includes('"result"')) report.taken += 1
  else if (status === 429 && limit !== undefined && /\r\nretry-after: \d+/i.test(head)) {
    report[limit as 'perAddressPerSecond' | 'checkDelayMsMax'] += 1
  } else {
    report.other += 1
    if (report.others.length < OTHERS_MAX) report.others.push(`${status} ${body}`)
  }
}
