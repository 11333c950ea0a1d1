import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { RecentBlocks } from '../../src/contract/execution-routes.ts'
import type { TopAccesses } from '../../src/contract/stream-events.ts'
import { createSeededRandom, randomInt } from '../../src/core/random.ts'
import { seedFor } from '../../src/core/test-seed.ts'
import { openExecutionStream } from '../../src/dashboard/client/stream-client.ts'
import type { StreamEvent } from '../../src/dashboard/client/stream-event.ts'
import { routeDocs, streamExamples } from '../../src/dashboard/model/api-docs.ts'
import type { SourceMessage } from '../../src/execution/source/message.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFaultProxy } from '../faults/fault-proxy.ts'
import { checkConnection, type Published } from '../support/execution/history-checker.ts'
import { executionSettings, startTestExecution } from '../support/execution/start.ts'
import { openStream } from '../support/execution/stream-reader.ts'
import { startPageRig } from './rig.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')

describe('the TypeScript client over real sockets', { timeout: 120_000 }, () => {
  for (const whenAway of ['a reader that keeps up', 'a reader that falls behind its buffer'] as const) {
    test(`${whenAway}: across disconnects its history equals that of a client that stayed connected`, async () => {
      const { seed, numRuns } = seedFor('stream client', 120)
      const random = createSeededRandom(seed)
      await using service = await startTestExecution({ clock: systemClock })
      const { host, port } = service.execution.address
      await using proxy = await startFaultProxy({ target: { host, port } })
      await using reference = await openStream(`${service.ws}/v1/ws?subscribe=TPS`)
      await reference.until(1)
      const isSlow = whenAway !== 'a reader that keeps up'
      await using stream = openExecutionStream(
        {
          url: `http://${proxy.host}:${proxy.port}`,
          subscribe: ['TPS'],
          firstDelayMs: 5,
          maxDelayMs: 40,
          ...(isSlow ? { bufferedEventsMax: 20 } : {}),
        },
        { random: () => random.float() },
      )
      const events: StreamEvent[] = []
      let isReading = true
      const reading = (async () => {
        for await (const event of stream) {
          events.push(event)
          await until('the reader reads', () => isReading, 60_000)
        }
      })()
      await until('the client is connected', () => events.some(({ kind }) => kind === 'connection'))
      await until('the client has its Hello', () => helloOf(events) !== undefined)

      let value = 0
      for (let step = 0; step < numRuns; step++) {
        service.source.report(...Array.from({ length: randomInt(random, 8) }, () => tps(++value)))
        const action = randomInt(random, 12)
        if (action === 0) proxy.resetConnections()
        if (action === 1) {
          await proxy.disable()
          service.source.report(...Array.from({ length: randomInt(random, 40) }, () => tps(++value)))
          await proxy.enable()
        }
        if (action === 2 && isSlow) isReading = !isReading
        if (action > 8) await new Promise((resolve) => setTimeout(resolve, randomInt(random, 15)))
      }
      isReading = true
      service.source.report(tps(++value))
      await until(
        'the last value came',
        () => events.some((event) => event.kind === 'TPS' && event.data === value),
        30_000,
      )
      await until('the reference has it too', () =>
        reference.frames.some((frame) => 'TPS' in frame && frame.TPS === value),
      )

      const published: Published[] = reference.texts
        .slice(1)
        .map((text) => ({ text, seq: (JSON.parse(text) as { seq: number }).seq }))
      const texts = [JSON.stringify({ seq: 0, Hello: helloOf(events) }), ...events.flatMap(textOf)]
      const { violations } = checkConnection({ texts, isComplete: true }, published)
      assert.deepEqual(violations, [])
      assert.equal(events.filter(({ kind }) => kind === 'gap').length, 0)
      assert.ok(
        events.filter((event) => event.kind === 'connection' && event.state === 'open').length > 3,
        'it was disconnected',
      )
      if (isSlow)
        assert.ok(
          events.some((event) => event.kind === 'connection' && event.state === 'full'),
          'its buffer was full',
        )
      stream.close()
      await reading
    })
  }

  test('with a small resume buffer, exactly the reported gaps are missing', async () => {
    const { seed } = seedFor('stream client with gaps')
    const random = createSeededRandom(seed)
    const { resume } = executionSettings()
    await using service = await startTestExecution({
      clock: systemClock,
      settings: { resume: { ...resume, entriesMax: 20 } },
    })
    const { host, port } = service.execution.address
    await using proxy = await startFaultProxy({ target: { host, port } })
    await using reference = await openStream(`${service.ws}/v1/ws?subscribe=TPS`)
    await reference.until(1)
    const url = `http://${proxy.host}:${proxy.port}`
    await using stream = openExecutionStream({ url, subscribe: ['TPS'], firstDelayMs: 5, maxDelayMs: 20 })
    const events: StreamEvent[] = []
    const reading = (async () => {
      for await (const event of stream) events.push(event)
    })()
    await until('the client has its Hello', () => helloOf(events) !== undefined)
    let value = 0
    for (let round = 0; round < 12; round++) {
      await proxy.disable()
      service.source.report(...Array.from({ length: randomInt(random, 40) }, () => tps(++value)))
      await proxy.enable()
      service.source.report(tps(++value))
      await until('the client is back', () => events.some((event) => event.kind === 'TPS' && event.data === value))
    }
    const { newest_seqno: start } = helloOf(events) as { newest_seqno: number }
    const published = reference.frames.flatMap((frame) => ('TPS' in frame && frame.seq > start ? [frame.seq] : []))
    const got = events.flatMap((event) => (event.kind === 'TPS' ? [event] : []))
    const reported = events.flatMap((event, at) => {
      if (event.kind !== 'gap') return []
      const next = events.slice(at).find(({ kind }) => kind === 'TPS')
      assert.ok(event.reason === 'window' && next?.kind === 'TPS')
      return [{ after: event.after ?? start, upTo: next.seq }]
    })
    const gotSeqs = new Set(got.map(({ seq }) => seq))
    const missing = published.filter((seq) => !gotSeqs.has(seq))
    assert.ok(missing.length > 0 && reported.length > 0, 'something was lost')
    for (const seq of missing)
      assert.ok(
        reported.some(({ after, upTo }) => seq > after && seq < upTo),
        `${seq} is missing without a word`,
      )
    for (const { after, upTo } of reported)
      assert.ok(
        missing.some((seq) => seq > after && seq < upTo),
        `nothing is missing after ${after}`,
      )
    assert.deepEqual(
      got.map(({ seq }) => seq),
      [...gotSeqs].toSorted((a, b) => a - b),
    )
    stream.close()
    await reading
  })

  test('follows the stream as a single served file in another Node process', async () => {
    await using rig = await startPageRig()
    const file = join(ROOT, 'dist', `execution-stream-${process.pid}.mjs`)
    const source = await (await fetch(`${rig.directUrl()}page/execution-stream.js`)).text()
    const program = `${source}\nfor await (const event of openExecutionStream({ url: '${rig.directUrl()}' })) if (event.kind === 'TPS' && event.origin === 'live') { console.log('tps', event.data); break }`
    assert.doesNotMatch(source, /^import /m)
    await writeFile(file, program)
    const { stdout } = await run(process.execPath, [file], { timeout: 30_000 })
    assert.match(stdout, /^tps \d+\n$/)
    await run('rm', [file])
  })

  test('the documented examples work as copied', async () => {
    await using rig = await startPageRig()
    const http = rig.directUrl().replace(/\/$/, '')
    const ws = http.replace('http', 'ws')
    let block = 0
    let contract = ''
    await until(
      'a block and a contract are known',
      async () => {
        const { blocks } = (await (await fetch(`${http}/v1/blocks?count=1`)).json()) as RecentBlocks
        block = blocks[0]?.contention?.block_number ?? 0
        const isThere = async (what: string) => (await fetch(`${http}/v1/${what}`)).ok
        if (block === 0 || !(await isThere('top-accesses'))) return false
        const tops = (await (await fetch(`${http}/v1/top-accesses`)).json()) as TopAccesses
        contract = tops.storage[0]?.key[0] ?? ''
        const paths = [`blocks/${block}/contention`, `blocks/${block}/transactions`, `contracts/${contract}`]
        return (await Promise.all(paths.map(isThere))).every(Boolean)
      },
      30_000,
    )
    const position = { http, ws, block, contract, clientUrl: `${http}/page/execution-stream.js` }
    const lines = routeDocs(position).flatMap(({ examples }) => examples)
    for (const { tool, text } of lines) {
      const [program, args] =
        tool === 'curl' ? ['bash', ['-c', `${text} --fail`]] : [process.execPath, ['--input-type=module', '-e', text]]
      const { stdout } = await run(program as string, args as string[], { timeout: 30_000 })
      assert.ok(stdout.length > 1, text)
      assert.doesNotMatch(stdout, /^[45]\d\d |"error"/, text)
    }
    const upgrade = streamExamples(position).find(({ tool }) => tool === 'curl')?.text ?? ''
    const { stdout } = await run('bash', ['-c', `${upgrade} || true`], { timeout: 30_000, encoding: 'latin1' })
    assert.match(stdout, /"Hello":/)
  })

  test('the example prints blocks and ends', async () => {
    await using rig = await startPageRig()
    const example = pathToFileURL(join(ROOT, 'examples/execution-stream.ts')).pathname
    const { stdout, stderr } = await run(process.execPath, [example, rig.directUrl(), '3'], { timeout: 30_000 })
    assert.equal(stdout.match(/^block \d+  \d+ transactions  [\d.]+ % efficient$/gm)?.length, 3)
    assert.match(stderr, /^connected$/m)
  })
})

function tps(value: number): SourceMessage {
  return { kind: 'tps', tps: value, blockNumber: value }
}

function helloOf(events: readonly StreamEvent[]): unknown {
  const open = events.find((event) => event.kind === 'connection' && event.state === 'open')
  return open?.kind === 'connection' && open.state === 'open' ? open.hello : undefined
}

function textOf(event: StreamEvent): string[] {
  return event.kind === 'TPS' ? [JSON.stringify({ seq: event.seq, TPS: event.data })] : []
}
