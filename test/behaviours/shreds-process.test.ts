import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { loadConfig } from '../../src/platform/config/file.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { configSchema } from '../../src/processes/compose/config/config.ts'
import { settingsOf } from '../../src/processes/compose/config/settings.ts'
import { startShredsProcess } from '../../src/processes/shreds.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { blockPackets, openSink, sendAll } from '../support/shreds/rig.ts'

test('the standalone process follows its store, relays, responds to the command line, and ends by drain', async () => {
  using folder = makeTestFolder()
  using sink = await openSink()
  const env = {
    SLUICE_SHREDS__LISTEN: '127.0.0.1:0',
    SLUICE_METRICS__LISTEN: '127.0.0.1:0',
    SLUICE_STATE: folder.file('state'),
  }
  const command = async (line: string): Promise<string> => {
    const { code, stdout, stderr } = await sluiceHere(line.split(' '), env)
    assert.equal(code, 0, `${line}: ${stderr}`)
    return stdout
  }
  const loaded = await loadConfig({ schema: configSchema, env, file: undefined })
  const settings = settingsOf(loaded, folder.file('state'))
  await command('customer add acme')
  const { lifecycle, shreds } = await startShredsProcess(settings, {
    log: silentLogger,
    clock: systemClock,
    random: secureRandom,
    env,
    readSettings: async () => settings,
  })
  await command('sub create one --customer acme --products shreds-raw')
  await command(`shred set-destination one 127.0.0.1:${sink.port} --vouched`)
  const shown = async () => JSON.parse(await command('shred show one --json')) as { state: string; sent: number }[]
  await until('it is served', async () => (await shown())[0]?.state === 'sending', 20_000)

  const packets = blockPackets(700)
  const sender = createSocket('udp4')
  sender.bind(0, '127.0.0.1')
  await once(sender, 'listening')
  await sendAll(sender, packets, shreds.address.port)
  sender.close()
  await until('all have come', () => sink.packets.length >= packets.length, 20_000)
  assert.deepEqual(
    new Set(sink.packets.map((each) => each.toString('hex'))),
    new Set(packets.map((each) => Buffer.from(each).toString('hex'))),
  )
  await until('they are shown', async () => (await shown())[0]?.sent === packets.length, 20_000)

  assert.match(await command('status'), /^state +ok\n[^]*^shreds +127\.0\.0\.1:/m)
  const top = JSON.parse(await command('top --json')) as {
    shreds: { destinations: number } | null
    sender: object | null
  }
  assert.deepEqual([top.shreds?.destinations, top.sender], [1, null])
  assert.equal(await command('logs tail'), '', 'nothing listens to the log of this test')
  await command('drain --yes')
  assert.equal((await lifecycle.stopped).clean, true)
})
