import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

export type AdminWork = {
  readonly name: string
  readonly method?: string
  readonly path: string
  readonly body?: object
}
export type AdminTimes = {
  /** Items of a list; lines of a text. */
  readonly items: number | null
  /** Time of the first request, which opens the connection and finds nothing that is kept from an earlier one. */
  readonly firstMs: number
  readonly p50: number
  readonly maxMs: number
}

/** Sends one request of the admin bench again and again, and posts its times. The first request is not counted with the others. */
const { work, url, token, rounds, pauseMs } = workerData as {
  readonly work: AdminWork
  readonly url: string
  readonly token: string
  readonly rounds: number
  readonly pauseMs: number
}
const times: number[] = []
let items: number | null = null
let firstMs = 0
for (let round = 0; round <= rounds; round++) {
  const startMs = performance.now()
  const response = await fetch(`${url}${work.path}`, {
    method: work.method ?? 'GET',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(work.body === undefined ? {} : { body: JSON.stringify(work.body) }),
  })
  const text = await response.text()
  const tookMs = performance.now() - startMs
  if (round > 0) times.push(tookMs)
  else firstMs = tookMs
  if (!response.ok) throw new Error(`${work.name}: ${response.status} ${text}`)
  items = itemsOf(text, response.headers.get('content-type') ?? '')
  await pause(pauseMs)
}
const sorted = times.toSorted((a, b) => a - b)
const figure = (ms: number | undefined) => Number((ms ?? 0).toFixed(1))
const posted: AdminTimes = {
  items,
  firstMs: figure(firstMs),
  p50: figure(sorted[sorted.length >> 1]),
  maxMs: figure(sorted.at(-1)),
}
parentPort?.postMessage(posted)

function itemsOf(text: string, contentType: string): number | null {
  if (!contentType.startsWith('application/json')) return text.split('\n').length - 1
  return (JSON.parse(text) as { items?: unknown[] }).items?.length ?? null
}
