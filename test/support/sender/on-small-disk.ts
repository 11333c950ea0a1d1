import { once } from 'node:events'
import { closeSync, ftruncateSync, openSync, statfsSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { until } from '../../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../../src/solana/crypto/base58.ts'
import { signatureOf, startTestSender, tipped, walletOf } from './start.ts'

/** The result, printed as JSON. */
export type SmallDiskSenderReport = {
  accepted: number
  /** Reported as sent but not recorded: in flight when the disk became full. */
  sentUnrecorded: number
  /** Refused and not sent. */
  refused: number
  /** Status and body of the raw endpoint while the disk was full. */
  raw: { status: number; retryAfter: string | null; error: unknown }
  /** Violations found; empty on success. */
  wrong: string[]
}

const BLOCK_BYTES = 4096
/** RETRY_MS of the journal. */
const RETRY_MS = 1000
const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))

/** Sends transactions while the disk of the journal fills up, is full, and has space again; then checks what a new process restores. */
if (import.meta.main) {
  const [, , folder = ''] = process.argv
  const report: SmallDiskSenderReport = {
    accepted: 0,
    sentUnrecorded: 0,
    refused: 0,
    raw: { status: 0, retryAfter: null, error: undefined },
    wrong: [],
  }
  const arrived = new Set<string>()
  const node = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => {
      const { params } = JSON.parse(text) as { params: [string] }
      arrived.add(signatureOf(Buffer.from(params[0], 'base64')))
      response.end('{"jsonrpc":"2.0","id":1,"result":"ok"}')
    })
  })
  node.listen(0, '127.0.0.1')
  await once(node, 'listening')
  const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`
  const relays = [{ name: 'node', url, allowPrivate: true }]
  const limits = {
    perAddressPerSecond: 100_000,
    perPayerPerSecond: 100_000,
    perAddressBurst: 100_000,
    perPayerBurst: 100_000,
    readsPerAddressPerSecond: 100_000,
  }
  const start = () => startTestSender({ folder, relays, limits, upstreams: false, quic: { enabled: false } })

  const filler = openSync(join(folder, 'filler'), 'w')
  const fill = () => {
    for (let left = Number(statfsSync(folder).bavail), at = 0; left > 0; left--, at += BLOCK_BYTES)
      writeSync(filler, Buffer.alloc(BLOCK_BYTES, 1), 0, BLOCK_BYTES, at)
  }
  const known: string[] = []
  const unknown: string[] = []
  {
    await using sender = await start()
    let n = 0
    const send = async () => {
      const wire = tipped(walletOf(0), BLOCKHASH, `small disk ${n++}`)
      const { result, error } = await sender.send(wire)
      if (result === signatureOf(wire)) {
        report.accepted += 1
        known.push(signatureOf(wire))
      } else if (error?.code === -32503 && error.data['reason'] === 'journal' && error.data['sent'] === true) {
        report.sentUnrecorded += 1
      } else if (error?.code === -32503 && error.data['reason'] === 'journal') {
        report.refused += 1
        unknown.push(signatureOf(wire))
      } else report.wrong.push(JSON.stringify(error))
      return error === undefined
    }
    await send()
    fill()
    // The rest of the last disk block still holds some lines.
    for (let tries = 0; tries < 200 && (await send()); tries++);
    const failedMs = performance.now()
    for (let more = 0; more < 5; more++) if (await send()) report.wrong.push('accepted on a full disk')
    const failures = () => sender.registry.value('sluice_sender_journal_failures_total') ?? 0
    if (failures() > 1 && performance.now() - failedMs < RETRY_MS) report.wrong.push('tried again at once')
    // After RETRY_MS the journal is written again, before the transaction is sent.
    await until('the disk may be tried again', () => performance.now() - failedMs > RETRY_MS + 100)
    const before = report.sentUnrecorded
    const tried = failures()
    if (await send()) report.wrong.push('accepted on a full disk, later')
    if (report.sentUnrecorded > before) report.wrong.push('sent although the journal write failed')
    if (failures() === tried) report.wrong.push('never retried')
    const raw = await fetch(`${sender.url}/api/v1/transactions`, {
      method: 'POST',
      body: tipped(walletOf(0), BLOCKHASH, 'raw'),
      headers: { 'content-type': 'application/octet-stream' },
    })
    const { error } = (await raw.json()) as { error: unknown }
    report.raw = { status: raw.status, retryAfter: raw.headers.get('retry-after'), error }
    ftruncateSync(filler, 0)
    closeSync(filler)
    await until('transactions are accepted after space was freed', send)
    for (const signature of unknown) if (arrived.has(signature)) report.wrong.push('sent although it was refused')
    await until('every accepted transaction is sent', () => known.every((signature) => arrived.has(signature)))
  }
  await using after = await start()
  for (const signature of known) {
    const { status, body } = await after.receipt(signature)
    if (status !== 200 || body.state !== 'unknown') report.wrong.push(`accepted, then ${status} ${body.state}`)
  }
  for (const signature of unknown) {
    if ((await after.receipt(signature)).status !== 404) report.wrong.push('refused, then known')
  }
  node.close().closeAllConnections()
  process.stdout.write(JSON.stringify(report))
}
