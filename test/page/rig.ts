import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Access } from '../../src/access/call-access.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { History } from '../../src/execution/history/history.ts'
import { startRingSource } from '../../src/execution/source/ring-source.ts'
import { type RingWriterService, startRingWriter } from '../../src/localnet/ring/writer-service.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { openPage } from '../../src/processes/compose/pages/live.ts'
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts'
import { createLastEvent, createSeqMemory, startTestExecution, type TestExecution } from '../support/execution/start.ts'

export type PageRig = AsyncDisposable & {
  /** The page as a browser reaches it, through the proxy. */
  readonly url: string
  /** The service itself, without the proxy. */
  readonly directUrl: () => string
  readonly proxy: FaultProxy
  readonly ring: RingWriterService
  /** Ends the service and starts it again on its port: sequence numbers and history continue, and the resume buffer is empty. */
  restart(): Promise<void>
}

export type PageRigOptions = {
  readonly blockMs?: number
  readonly tps?: number
  /** Share of proposals that lose: each is an incident on the page. */
  readonly abandonedShare?: number
  readonly names?: ReadonlyMap<string, string>
  /** The service requires tokens of this store. */
  readonly access?: Access
  /** Whether the service says so. */
  readonly isSimulated?: boolean
}

/** A simulated chain, its ring, the execution service that reads it, and the page, behind a proxy that can be disabled. */
export async function startPageRig(options: PageRigOptions = {}): Promise<PageRig> {
  await using opening = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'sluice-page-'))
  opening.defer(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'monad-exec-events')
  const { blockMs = 200, tps = 150, abandonedShare = 0.2 } = options
  const ring = opening.use(
    await startRingWriter({ path, blockMs, tps, abandonedShare, seed: 7 }, { log: silentLogger, clock: systemClock }),
  )
  const names = options.names ?? ring.labels
  const { page } = await openPage({ names })
  const seqStore = createSeqMemory()

  const isSimulated = options.isSimulated ?? true

  async function start(port: number): Promise<{ service: TestExecution; history: History }> {
    const lastEvent = createLastEvent(systemClock)
    const history = await History.open(
      { blocksMax: 512, files: { folder: join(folder, 'history'), bytesMax: 2 ** 26, isSimulated } },
      { clock: systemClock, log: silentLogger, eventAgeMs: () => lastEvent.ageMs },
    )
    const service = await startTestExecution({
      clock: systemClock,
      settings: { listen: { host: '127.0.0.1', port }, ...(options.access === undefined ? {} : { auth: 'token' }) },
      deps: {
        ...(options.access === undefined ? {} : { access: options.access }),
        page,
        names,
        seqStore,
        lastEvent,
        history,
        startSource: (onMessages) =>
          startRingSource(
            {
              kind: 'ring',
              isSimulated,
              path,
              start: 'newest-block',
              topAccessesMs: 1000,
              topAccessesResetMs: 300_000,
              blockBytesMax: 2 ** 26,
            },
            { log: silentLogger, clock: systemClock, random: createSeededRandom(1), onMessages },
          ),
      },
    })
    return { service, history }
  }

  let { service, history } = await start(0)
  const stop = async (): Promise<void> => {
    await service[Symbol.asyncDispose]()
    await history[Symbol.asyncDispose]()
  }
  opening.defer(() => stop())
  const { host, port } = service.execution.address
  const proxy = opening.use(await startFaultProxy({ target: { host, port } }))
  const opened = opening.move()
  return {
    url: `http://${proxy.host}:${proxy.port}/`,
    directUrl: () => `${service.http}/`,
    proxy,
    ring,
    async restart() {
      await service.execution.drain(1000)
      await stop()
      ;({ service, history } = await start(port))
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** The number a stat shows. */
export function statOf(page: Page, id: string): Promise<string> {
  return page.locator(`main [data-stat="${id}"] .number`).first().innerText()
}

/** Waits until the status strip shows the state. */
export async function untilState(page: Page, state: string, withinMs = 60_000): Promise<void> {
  await page.locator(`[data-state="${state}"]`).waitFor({ timeout: withinMs })
}

/** For tests that use a browser. */
export const NEEDS_CHROMIUM = { skip: existsSync('/usr/bin/chromium') ? false : 'chromium is not installed' }

/** Chromium draws WebGL in software where there is no graphics card. */
export const WEBGL = ['--enable-unsafe-swiftshader']
