import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { accountPageOver } from '../account/over-channel.ts'
import type { ControlPlaneChannel } from '../threads/protocol.ts'
import { accountPageMethods } from './account.ts'
import { jsonFile, type PageFile } from './bundle.ts'

const pageOver = (call: () => Promise<readonly PageFile[]>) =>
  accountPageOver({ call: call as ControlPlaneChannel['call'] })

test('the page is opened with the first request, once for all threads, and is at /account', async () => {
  let opened = 0
  const methods = accountPageMethods(silentLogger, async () => {
    opened += 1
    return { files: [jsonFile('/', 'page'), jsonFile('/account/a.js', 'script')], built: true }
  })
  const threads = [1, 2].map(() => pageOver(methods['account-page']))
  assert.equal(opened, 0)
  for (const page of threads) {
    const files = await page()
    assert.equal(Buffer.from(files('/account')?.body ?? '').toString(), 'page')
    assert.ok(files('/account/a.js') !== undefined && files('/') === undefined)
    assert.equal(await page(), files)
  }
  assert.equal(opened, 1)
})

test('a page that cannot be built is none; a control plane that did not reply is asked again', async () => {
  const methods = accountPageMethods(silentLogger, () => Promise.reject(new Error('no source')))
  assert.deepEqual(await methods['account-page'](), [])
  let calls = 0
  const page = pageOver(async () => {
    calls += 1
    if (calls === 1) throw new Error('late')
    return [jsonFile('/account', 'page')]
  })
  assert.equal((await page())('/account'), undefined)
  assert.ok((await page())('/account') !== undefined)
})
