import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { MASKED_TOKEN, pasteLines } from '../src/account-page/paste-lines.ts'
import {
  type CustomerService,
  readCustomerPages,
  runSnippet,
  startCustomerService,
} from './support/cli/customer-pages.ts'
import { sluiceHere } from './support/cli/in-process.ts'
import { temporaryFolder } from './support/cli/run.ts'

/**
 * Every line and program of the pages for customers, as written, against a whole `sluice serve` with its embedded chain. Each page runs in a folder of its
 * own that has nothing but the packages that the page names.
 */

const ROOT = join(import.meta.dirname, '..')
const pages = readCustomerPages()

describe('the pages for customers', () => {
  let service: CustomerService

  before(async () => {
    service = await startCustomerService()
  })
  after(() => service[Symbol.asyncDispose]())

  test('there are snippets for every product', () => {
    assert.equal(pages.length, 7)
    for (const { path, snippets } of pages) assert.ok(snippets.length > 0, path)
    assert.ok(pages.flatMap(({ snippets }) => snippets).length >= 18)
  })

  test('they name the versions that are tested', () => {
    for (const { path, packages } of pages) {
      for (const [name, version] of packages) {
        const installed = readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')
        assert.equal((JSON.parse(installed) as { version: string }).version, version, `${path}: ${name}`)
      }
    }
  })

  test('a sluice in the same shell does not read the variables of a customer as configuration', async () => {
    const readme = readFileSync(join(ROOT, 'docs/customers/README.md'), 'utf8')
    const named = [...readme.matchAll(/^export (SLUICE_\w+)=/gm)].map(([, name]) => name)
    assert.deepEqual(new Set(named), new Set(Object.keys(service.env)))
    const done = await sluiceHere(['config', 'check'], service.env)
    assert.equal(done.code, 0, done.stderr)
  })

  test('a refused transaction: the program of the page prints the error of the sender', async () => {
    const page = pages.find(({ path }) => path.endsWith('sender.md'))
    const program = page?.snippets.find(({ kind }) => kind === 'js')
    assert.ok(page !== undefined && program !== undefined)
    await using folder = await temporaryFolder()
    linkPackages(folder, page.packages.keys())
    const text = program.text.replace('BigInt(min_tip_lamports)', '5n')
    assert.notEqual(text, program.text)
    const { code, printed } = await runSnippet({ ...program, text }, { folder: folder.path, service })
    assert.equal(code, 1, printed)
    assert.match(printed, /Error: The tip of the transaction is below the minimum\./)
    assert.match(printed, /docs_url: '[^']+\/docs\/errors\/tip-too-small'/)
  })

  test('the lines of the account page for web3.js make calls and subscribe', async () => {
    const { SLUICE_RPC: rpc = '', SLUICE_WS: ws = '' } = service.env
    const input = { endpoints: { rpc, ws }, products: ['bundle'], origin: rpc, token: MASKED_TOKEN }
    const lines = pasteLines(input).find(({ id }) => id === 'web3')?.text ?? ''
    await using folder = await temporaryFolder()
    linkPackages(folder, ['@solana/web3.js'])
    const text = [
      "import { Connection } from '@solana/web3.js'",
      lines,
      "console.log('height', await connection.getBlockHeight())",
      "connection.onSlotChange(({ slot }) => { console.log('slot', slot); process.exit() })",
    ].join('\n')
    const { code, printed } = await runSnippet({ name: 'web3', kind: 'js', text }, { folder: folder.path, service })
    assert.equal(code, 0, printed)
    assert.match(printed, /^height \d+\nslot \d+\n$/)
  })

  for (const { path, packages, snippets } of pages) {
    describe(path, () => {
      let folder: Awaited<ReturnType<typeof temporaryFolder>>
      before(async () => {
        folder = await temporaryFolder()
        linkPackages(folder, packages.keys())
      })
      after(() => folder[Symbol.asyncDispose]())

      for (const snippet of snippets) {
        test(`${snippet.name} works as written`, async () => {
          const { code, printed } = await runSnippet(snippet, { folder: folder.path, service })
          assert.equal(code, 0, printed)
          assert.ok(printed.trim() !== '' || snippet.text.includes('-sfO'), 'it printed nothing')
        })
      }
    })
  }
})

function linkPackages(folder: { file(name: string): string }, names: Iterable<string>): void {
  for (const name of names) {
    const link = folder.file(join('node_modules', name))
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), link)
  }
}
