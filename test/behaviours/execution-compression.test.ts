import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { WebSocket as WsClient } from 'ws'
import type { ContentionData, Hello } from '../../src/contract/stream-events.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { reportTps, startTestExecution, type TestExecution } from '../support/execution/start.ts'
import { openStream } from '../support/execution/stream-reader.ts'
import { openRawWs } from '../support/gateway/raw-ws.ts'
import { startChromium } from '../support/machine/chromium.ts'

/** permessage-deflate on the stream: an option, for clients that ask for it, each frame compressed once for all of them. */

const ON = { settings: { wsCompression: true } }

/** A report of some KiB, as the contention of a real block. */
function contention(number: number) {
  const data = {
    block_number: number,
    top_contended_slots: Array.from({ length: 20 }, (_, at) => ({
      address: `0x${'ab'.repeat(18)}${String(at % 4).padStart(4, '0')}`,
      slot: `0x${String(at).padStart(64, '0')}`,
      txn_count: at,
      access_count: at * 2,
    })),
    top_contended_contracts: [],
    contract_edges: [],
  } as unknown as ContentionData
  return { kind: 'contention', data, conflicts: {} as never } as const
}

type Client = { readonly texts: string[]; readonly extensions: string; readonly bytesRead: number; close(): void }

async function openWs(url: string, perMessageDeflate: boolean | object = true): Promise<Client> {
  const socket = new WsClient(url, { perMessageDeflate })
  const texts: string[] = []
  let raw: { bytesRead: number } | undefined
  socket.on('upgrade', (response) => (raw = response.socket))
  socket.on('message', (data: Buffer) => texts.push(data.toString()))
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return {
    texts,
    extensions: socket.extensions,
    get bytesRead() {
      return raw?.bytesRead ?? 0
    },
    close: () => socket.terminate(),
  }
}

async function counted(service: TestExecution, name: string): Promise<number> {
  const text = await (await fetch(`${service.http}/metrics`)).text()
  return Number(new RegExp(`^sluice_execution_${name} (\\S+)`, 'm').exec(text)?.[1] ?? Number.NaN)
}

describe('compression of the stream', () => {
  test('is off by default', async () => {
    await using service = await startTestExecution()
    const client = await openWs(`${service.ws}/v1/ws`)
    assert.equal(client.extensions, '')
    client.close()
  })

  test('many clients with different subscriptions share one compression of each frame', async () => {
    await using service = await startTestExecution(ON)
    const paths = ['', '?subscribe=ContentionData', '?subscribe=ContentionData,TPS']
    const clients = await Promise.all(
      Array.from({ length: 30 }, (_, at) => openWs(`${service.ws}/v1/ws${paths[at % 3] ?? ''}`)),
    )
    await using plain = await openStream(`${service.ws}/v1/ws?subscribe=ContentionData`)
    await plain.until(1)
    for (const { extensions } of clients) assert.match(extensions, /permessage-deflate/)
    await until('all are greeted', () => clients.every(({ texts }) => texts.length >= 1))
    const before = await counted(service, 'ws_deflate_in_bytes_total')
    assert.equal(before, 0, 'Hello is not compressed')
    for (let number = 1; number <= 5; number++) service.source.report(contention(number))
    await plain.until(6)
    const frames = plain.texts.slice(1)
    await until('all have all', () => clients.every(({ texts }) => texts.length >= 6))
    for (const { texts } of clients) assert.deepEqual(texts.slice(1), frames)
    const bytes = frames.reduce((sum, text) => sum + Buffer.byteLength(text) + 4, 0)
    assert.equal(await counted(service, 'ws_deflate_in_bytes_total'), bytes, 'once for all')
    assert.ok((await counted(service, 'ws_deflate_out_bytes_total')) < bytes / 3)
    for (const client of clients) {
      assert.ok(client.bytesRead < bytes / 2, `${client.bytesRead} of ${bytes} bytes`)
      client.close()
    }
  })

  test('a resumed client gets the same texts, and frames that were sent live are not compressed again', async () => {
    await using service = await startTestExecution(ON)
    await using plain = await openStream(`${service.ws}/v1/ws?subscribe=ContentionData,TPS`)
    const live = await openWs(`${service.ws}/v1/ws?subscribe=ContentionData,TPS`)
    await plain.until(1)
    await until('it is greeted', () => live.texts.length === 1)
    for (let number = 1; number <= 40; number++) service.source.report(contention(number), reportTps(number))
    await plain.until(81)
    await until('all came', () => live.texts.length === 81)
    const before = await counted(service, 'ws_deflate_in_bytes_total')
    const newest = (JSON.parse(plain.texts[0] ?? '') as { Hello: Hello }).Hello.newest_seqno
    const resumed = await openWs(`${service.ws}/v1/ws?subscribe=ContentionData,TPS&resume_from=${newest}`)
    await until('the replay is over', () => resumed.texts.length === 81)
    assert.equal((JSON.parse(resumed.texts[0] ?? '') as { Hello: Hello }).Hello.resumed, true)
    assert.deepEqual(resumed.texts.slice(1), plain.texts.slice(1))
    assert.equal(await counted(service, 'ws_deflate_in_bytes_total'), before)
    service.source.report(reportTps(99))
    await until('live frames follow', () => resumed.texts.length === 82)
    live.close()
    resumed.close()
  })

  test('a replay compresses what nobody was sent compressed before', async () => {
    await using service = await startTestExecution(ON)
    for (let number = 1; number <= 300; number++) service.source.report(contention(number))
    const { oldest_seqno } = (await (await fetch(`${service.http}/v1/status`)).json()) as { oldest_seqno: number }
    const resumed = await openWs(`${service.ws}/v1/ws?subscribe=ContentionData&resume_from=${oldest_seqno - 1}`)
    await until('the replay is over', () => resumed.texts.length === 301)
    const numbers = resumed.texts
      .slice(1)
      .map((text) => (JSON.parse(text) as { ContentionData: ContentionData }).ContentionData)
    assert.deepEqual(
      numbers.map(({ block_number }) => block_number),
      Array.from({ length: 300 }, (_, at) => at + 1),
    )
    assert.ok(resumed.bytesRead < resumed.texts.join('').length / 3)
    resumed.close()
  })

  test('an offer that cannot be honoured is declined, and the stream opens without compression', async () => {
    await using service = await startTestExecution(ON)
    const offers: readonly [string, RegExp | undefined][] = [
      ['permessage-deflate; server_max_window_bits=9', undefined],
      ['permessage-deflate; nonsense=3', undefined],
      ['permessage-deflate; client_max_window_bits=99', undefined],
      [
        'permessage-deflate; server_max_window_bits=9, permessage-deflate',
        /permessage-deflate; server_no_context_takeover; client_no_context_takeover\r/,
      ],
      ['permessage-deflate; server_max_window_bits=12; client_max_window_bits=12', /server_max_window_bits=12/],
    ]
    for (const [offer, response] of offers) {
      const seen = await openRawWs(`${service.ws}/v1/ws`, { 'sec-websocket-extensions': offer })
      assert.match(seen.head, /^HTTP\/1\.1 101 /, offer)
      const line = /sec-websocket-extensions: .*\r?/i.exec(`${seen.head}\r`)?.[0]
      if (response === undefined) assert.equal(line, undefined, offer)
      else assert.match(line ?? '', response, offer)
      await until('Hello came', () => seen.frames.length > 0)
      assert.match(seen.frames[0]?.payload.toString() ?? '', /"Hello"/)
      seen.socket.destroy()
    }
  })

  test("Node's own WebSocket reads it", async () => {
    await using service = await startTestExecution(ON)
    const socket = new WebSocket(`${service.ws}/v1/ws?subscribe=ContentionData`)
    const texts: string[] = []
    socket.addEventListener('message', ({ data }) => texts.push(String(data)))
    await until('it is greeted', () => texts.length === 1)
    assert.match(socket.extensions, /permessage-deflate/)
    for (let number = 1; number <= 3; number++) service.source.report(contention(number))
    await until('all came', () => texts.length === 4)
    assert.deepEqual((JSON.parse(texts[3] ?? '') as { ContentionData: unknown }).ContentionData, contention(3).data)
    socket.send(JSON.stringify({ subscribe: ['TPS', 'ContentionData'] }))
    await until('its message is read', () => texts.some((text) => text.includes('"Subscribed"')))
    assert.equal(await counted(service, 'ws_deflate_out_bytes_total').then((bytes) => bytes > 0), true)
    socket.close()
  })

  test('Chromium reads it and sends compressed messages', async () => {
    await using service = await startTestExecution(ON)
    await using browser = await startChromium()
    const { page } = await browser.open(`${service.http}/`)
    const extensions = await page.evaluate(
      (url) =>
        new Promise<string>((resolve, reject) => {
          const texts: string[] = []
          const socket = new WebSocket(url)
          Object.assign(globalThis, { texts, socket })
          socket.onmessage = ({ data }) => texts.push(String(data))
          socket.onopen = () => resolve(socket.extensions)
          socket.onerror = () => reject(new Error('refused'))
        }),
      `${service.ws}/v1/ws?subscribe=ContentionData`,
    )
    assert.match(extensions, /permessage-deflate/)
    const texts = () => page.evaluate(() => (globalThis as unknown as { texts: string[] }).texts)
    await until('it is greeted', async () => (await texts()).length === 1)
    for (let number = 1; number <= 3; number++) service.source.report(contention(number))
    await until('all came', async () => (await texts()).length === 4)
    const last = JSON.parse((await texts())[3] ?? '') as { ContentionData: unknown }
    assert.deepEqual(last.ContentionData, contention(3).data)
    // Long enough that the browser compresses it.
    const filters = Array.from({ length: 16 }, () => ({ address: `0x${'11'.repeat(20)}` }))
    const message = JSON.stringify({ subscribe: { events: ['TxnLog'], filters } })
    await page.evaluate((text) => (globalThis as unknown as { socket: WebSocket }).socket.send(text), message)
    await until('its message is read', async () => (await texts()).some((text) => text.includes('"Subscribed"')))
  })
})
