import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluiceHere } from '../../../../../test/support/cli/in-process.ts'
import { makeTestFolder } from '../../../../platform/files/test-folder.ts'

test('a resumed destination is said to be sent to only if it is', async () => {
  using home = makeTestFolder()
  const run = async (line: string) => {
    const { code, stdout, stderr } = await sluiceHere(line.split(' '), { SLUICE_STATE: home.file('.sluice') })
    assert.equal(code, 0, `${line}: ${stderr}`)
    return stdout + stderr
  }
  await run('customer add acme')
  await run('sub create one --customer acme --products shreds-raw --destination 8.8.8.8:20001')
  await run('shred pause one')
  assert.match(await run('shred resume one'), /not paused any more, but unproven: .*sluice shred verify one/)
  await run('shred set-destination one 8.8.8.8:20001 --vouched')
  await run('shred pause one')
  assert.match(await run('shred resume one'), /sending again/)
  await run('shred pause one')
  await run('customer suspend acme --yes')
  assert.match(await run('shred resume one'), /but nothing is sent: the subscription is customer-suspended/)
})
