import { batch, type Signal, signal } from '@preact/signals'
import type { History } from '../../contract/execution-history.ts'
import type { StatusRecord } from '../../contract/execution-routes.ts'
import { DEFAULT_KINDS } from '../../contract/stream-events.ts'
import { followHash } from '../../ui/page/follow-hash.ts'
import { createStoreContext } from '../../ui/page/store-context.ts'
import { readTheme, type Theme } from '../../ui/theme.ts'
import { openExecutionStream } from '../client/stream-client.ts'
import type { StreamEvent } from '../client/stream-event.ts'
import { PageModel } from '../model/page-model.ts'
import { parseRoute, type Route } from '../model/route.ts'
import type { TimeRange } from '../model/time-series.ts'
import { createLabels, type Labels } from './labels.ts'
import { createService, type Service } from './service.ts'
import { keepToken, readToken } from './token.ts'

/** State shared by all parts of the page. */
export type Store = {
  readonly model: PageModel
  readonly service: Service
  readonly labels: Labels
  readonly route: Signal<Route>
  readonly theme: Signal<Theme>
  /** Changes with the model; views that read it are rendered again. */
  readonly version: Signal<number>
  /** The time of this device, updated four times a second. */
  readonly nowMs: Signal<number>
  readonly paused: Signal<boolean>
  /** Blocks that arrived while paused. */
  readonly heldBlocks: Signal<number>
  /** The range of the charts. */
  readonly range: Signal<TimeRange>
  /** The newest frame of each kind, for the documentation. */
  readonly samples: Map<string, unknown>
  togglePause(): void
  /** Uses a token; false when the service refuses it. */
  setToken(token: string): Promise<boolean>
}

const DRAW_MS = 250
const STATUS_MS = 2000
/** The history is loaded at the start, and this long after each connection, when it has everything from before the first frame. */
const HISTORY_AFTER_MS = 2000
/** Frames kept while paused: half an hour at ten a second. Above that the oldest are dropped and reported as an incident. */
const HELD_MAX = 18_000

export const { StoreProvider, useStore } = createStoreContext<Store>()

export function createStore(): Store {
  const model = new PageModel()
  let token = readToken()
  let following = new AbortController()
  const service = createService(new URL('.', location.href), () => token)
  const version = signal(0)
  const nowMs = signal(Date.now())
  const paused = signal(false)
  const heldBlocks = signal(0)
  const samples = new Map<string, unknown>()
  const labels = createLabels()
  let held: { event: StreamEvent; atMs: number }[] = []
  let heldDropped = 0
  let changed = false
  let isDrawDue = false

  function handle(event: StreamEvent, atMs: number): void {
    if (event.kind === 'connection' && event.state === 'open') {
      // What happened while the page was not connected is in the history, up to the last second that is over.
      setTimeout(() => void loadHistory(), HISTORY_AFTER_MS)
    }
    if ('seq' in event && event.kind !== 'other') samples.set(event.kind, { seq: event.seq, [event.kind]: event.data })
    if (!paused.value) {
      model.apply(event, atMs)
      changed = true
      return
    }
    held.push({ event, atMs })
    if (event.kind === 'ContentionData' && event.data.replaces_block_id === undefined) heldBlocks.value += 1
    if (held.length <= HELD_MAX) return
    held.shift()
    heldDropped += 1
  }

  function togglePause(): void {
    if (!paused.value) {
      paused.value = true
      return
    }
    batch(() => {
      paused.value = false
      for (const { event, atMs } of held) model.apply(event, atMs)
      if (heldDropped > 0)
        model.apply(
          { kind: 'gap', reason: 'buffer', after: undefined, frames: heldDropped, warning: undefined },
          Date.now(),
        )
      held = []
      heldDropped = 0
      heldBlocks.value = 0
      version.value += 1
    })
  }

  async function follow(): Promise<void> {
    const subscribe = [...DEFAULT_KINDS, 'ConflictData'] as const
    const { signal: end } = following
    const ticket = token === undefined ? {} : { ticket: service.ticket }
    const options = { url: service.base, subscribe, maxDelayMs: 8000, signal: end, ...ticket }
    for await (const event of openExecutionStream(options)) handle(event, Date.now())
  }

  async function setToken(given: string): Promise<boolean> {
    token = given
    const { status } = await service.get<StatusRecord>('v1/status')
    if (status === 401) {
      token = undefined
      return false
    }
    keepToken(given)
    following.abort()
    following = new AbortController()
    void follow()
    void loadHistory()
    await loadStatus()
    return true
  }

  async function loadStatus(): Promise<void> {
    const usedToken = token
    const status = await service.get<StatusRecord>('v1/status')
    // Another token may have been entered meanwhile.
    if (usedToken !== token) return
    model.setLocked(status.status === 401)
    // A token that is refused now was revoked or has expired.
    if (status.status === 401) keepToken(undefined)
    model.setStatus(status.ok ? status.value : undefined, Date.now())
    changed = true
  }

  async function loadHistory(): Promise<void> {
    const requestedMs = Date.now()
    const history = await service.get<History>('v1/history')
    if (!history.ok) return
    model.addHistory(history.value, requestedMs, Date.now())
    changed = true
  }

  function draw(): void {
    isDrawDue = false
    batch(() => {
      // The time is paused too, so that charts do not move.
      if (paused.value) return
      nowMs.value = Date.now()
      model.tick(nowMs.value)
      if (changed) version.value += 1
      changed = false
    })
  }

  /** Draws with the next animation frame: at most once per frame, and not in a hidden tab. */
  function drawSoon(): void {
    if (isDrawDue) return
    isDrawDue = true
    requestAnimationFrame(draw)
  }

  async function loadNames(): Promise<void> {
    const names = await service.get<unknown>('page/names.json')
    if (names.ok) labels.addServed(names.value)
  }

  void follow()
  void loadNames()
  void loadHistory()
  void loadStatus()
  setInterval(drawSoon, DRAW_MS)
  setInterval(() => void loadStatus(), STATUS_MS)

  return {
    model,
    service,
    labels,
    route: followHash(parseRoute),
    theme: signal(readTheme()),
    version,
    nowMs,
    paused,
    heldBlocks,
    range: signal<TimeRange>('1h'),
    samples,
    togglePause,
    setToken,
  }
}
