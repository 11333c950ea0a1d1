import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { freePort } from '../support/machine/free-ports.ts'
import { type Served, serve } from '../support/process/serve.ts'
import { openSink } from '../support/shreds/rig.ts'

/** `sluice serve` with its own chain and a customer. */
const home = await temporaryFolder()
const shredsPort = await freePort()
let running: Served
before(async () => {
  running = serve({
    cwd: home.path,
    args: ['--no-demo'],
    env: {
      SLUICE_LOCALNET__ENABLED: 'true',
      SLUICE_LOCALNET__SLOT_MS: '100',
      SLUICE_SENDER__ENABLED: 'false',
      SLUICE_SHREDS__LISTEN: `127.0.0.1:${shredsPort}`,
    },
  })
  await running.line(/"msg":"started"/)
  await done('customer add acme')
  for (const name of ['one', 'two']) await done(`sub create ${name} --customer acme --products shreds-raw`)
})
after(async () => {
  await running[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
})

const slotOf = (packet: Buffer): number => Number(packet.readBigUInt64LE(65))
const run = (line: string) => sluiceHere(line.split(' '), { SLUICE_STATE: home.file('.sluice') })
async function done(line: string): Promise<string> {
  const { code, stdout, stderr } = await run(line)
  assert.equal(code, 0, `${line}: ${stderr}`)
  return stdout
}
async function refused(line: string, message: RegExp): Promise<void> {
  const { code, stderr } = await run(line)
  assert.notEqual(code, 0, line)
  assert.match(stderr, message)
}
const shown = async (name: string) =>
  JSON.parse(await done(`shred show ${name} --json`)) as {
    proof: string
    state: string
    destination: string
    sent: number
  }[]

test('logs the UDP engine and the listen address at start', async () => {
  assert.match(await running.line(/"msg":"shred relay started"/), /"engine":"(sendmmsg|dgram)"/)
  assert.match(await running.address('shreds'), /^127\.0\.0\.1:\d+$/)
})

test('serves a vouched destination at once and sends nothing more to a replaced address', async () => {
  using first = await openSink()
  using second = await openSink()
  await done(`shred set-destination one 127.0.0.1:${first.port} --vouched`)
  await until('it is served', () => first.packets.length > 64)
  await until('it is shown', async () => (await shown('one'))[0]?.state === 'sending')

  await done(`shred set-destination one 127.0.0.1:${second.port} --vouched`)
  const changedMs = performance.now()
  await until('the new one is served', () => second.packets.length > 0)
  // The guarantee is one second; tests allow more on a busy machine.
  assert.ok((second.times[0] as number) - changedMs < 5000)
  const from = slotOf(second.packets[0] as Buffer)
  await until('later shreds have come', () => slotOf(second.packets.at(-1) as Buffer) > from + 3)
  assert.ok(
    first.packets.every((packet) => slotOf(packet) <= from),
    'the old address got shreds after the new one',
  )

  await done('shred pause one')
  await until('it is paused', async () => (await shown('one'))[0]?.state === 'paused')
  await done('shred resume one')
  const pausedAt = second.packets.length
  await until('delivery continues', () => second.packets.length > pausedAt)
})

test('verify is refused for a destination that is already served', async () => {
  using sink = await openSink()
  await done(`shred set-destination two 127.0.0.1:${sink.port} --vouched`)
  await until('it is served', () => sink.packets.length > 0)
  await refused('shred verify two', /waits for its proof/)
  await refused(`shred verify two ${'0'.repeat(32)}`, /waits for its proof/)
})

test('refuses destinations outside the rules with the reason', async () => {
  for (const [destination, message] of [
    ['10.0.0.1:20001 --vouched', /private network/],
    ['224.0.0.1:20001 --vouched', /multicast/],
    ['255.255.255.255:20001 --vouched', /broadcast/],
    ['[::ffff:1.2.3.4]:20001 --vouched', /ipv4-mapped/],
    ['127.0.0.1:53 --vouched', /port/],
    ['1.2.3.4:11211 --vouched', /amplification/],
    // A port of the running process, which this command line does not set.
    [`127.0.0.1:${shredsPort} --vouched`, /receives shreds on/],
    ['example.net:20001', /literal/],
    ['127.0.0.1:20009', /must be confirmed with --vouched/],
  ] as const)
    await refused(`shred set-destination one ${destination}`, message)
})

test('refuses an address that another subscription has', async () => {
  const [one] = await shown('one')
  await refused(`shred set-destination two ${one?.destination} --vouched`, /another subscription/)
})

test('the delivery report has packets, bytes, slots and duplicates by hour, as CSV and JSON', async () => {
  let row: Record<string, string> = {}
  await until('the report is written', async () => {
    const [header = '', values = ''] = (await done('shred report one --since 1h -o csv')).trim().split('\n')
    row = Object.fromEntries(header.split(',').map((name, at) => [name, values.split(',')[at] ?? '']))
    return Number(row['packets']) > 100
  })
  for (const name of [
    'from',
    'unsent_rate',
    'unsent_total_rate',
    'unsent_buffer',
    'unsent_paused',
    'unsent_error',
    'refusals',
  ])
    assert.ok(name in row, name)
  assert.equal(row['subscription'], 'one')
  assert.ok(Number(row['bytes']) > Number(row['packets']) * 1200 && Number(row['slots']) > 1, JSON.stringify(row))
  assert.ok(Number(row['duplicates_suppressed']) >= 0)
  const [p50, p99] = [Number(row['delay_p50_ms']), Number(row['delay_p99_ms'])]
  assert.ok(p50 > 0 && p99 >= p50 && p99 <= 100, `from receipt to sending: p50 ${p50} ms, p99 ${p99} ms`)
  const [total] = JSON.parse(await done('shred report one --by total --json')) as { packets: number }[]
  assert.ok((total?.packets ?? 0) >= Number(row['packets']))
})

test('a suspended subscription gets no shreds, and the doctor reports the shred source', async () => {
  using sink = await openSink()
  await done(`shred set-destination one 127.0.0.1:${sink.port} --vouched`)
  await until('it is served', () => sink.packets.length > 0)
  await done('sub suspend one --yes')
  await until('it gets no shreds', async () => (await shown('one'))[0]?.state === 'suspended')
  const { stdout } = await run('doctor --json')
  const findings = JSON.parse(stdout) as { check: string; level: string; message: string }[]
  const message = findings.find(({ check }) => check === 'shred source')?.message ?? ''
  assert.match(message, /shreds per second, newest slot \d+/)
  // No slot after the newest one at the time of the doctor's check may have arrived.
  assert.ok(sink.packets.every((packet) => slotOf(packet) <= Number(/\d+$/.exec(message)?.[0])))
})
