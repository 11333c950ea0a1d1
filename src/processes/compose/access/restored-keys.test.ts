import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { mockSync } from '../../../../test/support/process/mock-sync.ts'
import { createManualClock } from '../../../core/clock.ts'
import { createSeededRandom } from '../../../core/random.ts'
import { openStateFolder } from '../../../platform/files/state-folder.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { putStateContent } from './put-state-content.ts'

test('a restored key replaces the old one in one step: a disk that is full leaves the old one under its name', async (t) => {
  using folder = makeTestFolder()
  const state = await openStateFolder(folder.file('state'))
  const keys = await state.folder('keys')
  const path = join(keys, 'tip-1.json')
  await writeFile(path, 'old', { mode: 0o600 })
  const restore = (stamp: string) =>
    putStateContent(
      state,
      { extras: [], keys: { files: [{ name: 'tip-1.json', text: 'new' }], shared: [] } },
      { stamp, clock: createManualClock(), random: createSeededRandom(1) },
    )
  const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  const sync = await mockSync(t, folder.file('any'), () => Promise.reject(full))
  await assert.rejects(restore('1'))
  assert.equal(readFileSync(path, 'utf8'), 'old')
  sync.mock.restore()
  const [kept = ''] = await restore('2')
  assert.deepEqual([readFileSync(path, 'utf8'), readFileSync(kept, 'utf8')], ['new', 'old'])
  assert.equal(kept, `${path}.before-restore-2`)
  assert.ok(!readdirSync(keys).some((name) => name.endsWith('.tmp')))
})
