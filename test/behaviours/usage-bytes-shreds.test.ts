import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'
import { blockPackets, openSink, sendAll } from '../support/shreds/rig.ts'

type UsageRow = {
  readonly subscription: string
  readonly interface: string
  readonly calls: number
  readonly bytes: number
}

test('the ledger has the bytes of the UDP packets that each subscription receives from the relay thread, and no calls', async () => {
  await using home = await temporaryFolder()
  using one = await openSink()
  using two = await openSink()
  await using running = serve({ cwd: home.path, args: ['--no-demo'] })
  await running.line(/"msg":"started"/)
  const done = async (line: string): Promise<string> => {
    const { code, stdout, stderr } = await sluiceHere(line.split(' '), { SLUICE_STATE: home.file('.sluice') })
    assert.equal(code, 0, `${line}: ${stderr}`)
    return stdout
  }
  await done('customer add acme')
  for (const [name, { port }] of Object.entries({ one, two })) {
    await done(`sub create ${name} --customer acme --products shreds-raw`)
    await done(`shred set-destination ${name} 127.0.0.1:${port} --vouched`)
    await until(`${name} is served`, async () => {
      const [shown] = JSON.parse(await done(`shred show ${name} --json`)) as { state: string }[]
      return shown?.state === 'sending'
    })
  }
  const port = Number((await running.address('shreds')).split(':').at(-1))
  const sender = createSocket('udp4')
  sender.bind(0, '127.0.0.1')
  await once(sender, 'listening')
  const first = blockPackets(700, { sets: 2 })
  await sendAll(sender, first, port)
  await until('both have the first block', () => [one, two].every(({ packets }) => packets.length >= first.length))
  // The relay takes a change within a second; from then on only one of them is served.
  await done('shred pause two')
  let sent = first.length
  let slot = 701
  await until('only one has a block', async () => {
    const block = blockPackets(slot++)
    sent += block.length
    await sendAll(sender, block, port)
    await until('one has it', () => one.packets.length >= sent)
    return two.packets.length + block.length <= sent
  })
  sender.close()

  const ledger = async () => {
    const rows = JSON.parse(await done('usage --json')) as UsageRow[]
    return Object.fromEntries(rows.map((row) => [`${row.subscription} ${row.interface}`, [row.calls, row.bytes]]))
  }
  const bytesOf = ({ packets }: typeof one) => packets.reduce((sum, { length }) => sum + length, 0)
  const received = () => ({ 'one shreds': [0, bytesOf(one)], 'two shreds': [0, bytesOf(two)] })
  await until('the ledger has them', async () => isDeepStrictEqual(await ledger(), received()))
  assert.ok(bytesOf(two) > 0 && bytesOf(one) > bytesOf(two))
})
