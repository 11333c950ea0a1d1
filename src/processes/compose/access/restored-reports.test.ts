import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import type { BackupExtra } from '../../../access/backup/summary.ts'
import { openStateFolder } from '../../../platform/files/state-folder.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { DELAY_BOUNDS_MICROS } from '../../../shreds/relay/protocol.ts'
import { openReportStore } from '../../../shreds/report/store.ts'
import { REPORT_FILE } from '../services/shreds.ts'
import { findReplaced, putStateContent } from './put-state-content.ts'
import { stateContent } from './state-content.ts'

const deps = { clock: systemClock, random: secureRandom }
const NO_KEYS = { files: [], shared: [] }
const HOUR_MS = 3_600_000

test('the delays of shred delivery come back with a backup, also where no row of a subscription does', async () => {
  using folder = makeTestFolder()
  const state = await openStateFolder(folder.file('state'))
  await state.folder(REPORT_FILE[0])
  const delays = [1, 2].map((hour) => ({
    hour: hour * HOUR_MS,
    packets: [...DELAY_BOUNDS_MICROS, 0].map((_, bucket) => bucket * hour),
  }))
  {
    await using store = await openReportStore(state.file(...REPORT_FILE), { ...deps, create: true })
    await store.add([], delays)
  }
  const extras: BackupExtra[] = []
  for await (const extra of stateContent(state.path, NO_KEYS, { ...deps, seal: undefined })) {
    // As a line of the backup.
    extras.push(JSON.parse(JSON.stringify(extra)) as BackupExtra)
  }
  const content = { extras, keys: undefined }
  assert.deepEqual(await findReplaced(state, content), [state.file(...REPORT_FILE)])
  const kept = await putStateContent(state, content, { ...deps, stamp: 'now' })
  assert.ok(kept.length > 0 && kept.every((path) => existsSync(path)))
  await using restored = await openReportStore(state.file(...REPORT_FILE), { ...deps, create: false })
  assert.deepEqual(await restored.delays({ fromMs: 0 }), delays)
})
