import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cli.ts'
import { sluiceHere } from '../support/cli-in-process.ts'

/** What an operator mistypes: each is answered with what is wrong and with what to do. */
type Mistake = { readonly typed: string; readonly wrong: RegExp; readonly fix: RegExp }

const MISTAKES: readonly Mistake[] = [
  { typed: 'serv', wrong: /no command "serv", did you mean "serve"/, fix: /Use "serve"/ },
  { typed: 'sub creat acme', wrong: /did you mean "create"/, fix: /Use "create"/ },
  { typed: 'sub create y', wrong: /--customer and its value are missing/, fix: /sluice sub create --help/ },
  { typed: 'sub list --jsn', wrong: /there is no --jsn, did you mean "--json"/, fix: /sluice sub list --help/ },
  { typed: 'sub create y --customer acmee', wrong: /did you mean "acme"/, fix: /sluice customer list/ },
  { typed: 'sub create y --customer acme --plan bild', wrong: /there are starter/, fix: /sluice plan list/ },
  { typed: 'sub create y --customer acme --products bundel', wrong: /did you mean "bundle"/, fix: /Products: / },
  { typed: 'sub create y --customer acme --until tomorrow', wrong: /such as 2027-01-31/, fix: /./ },
  { typed: 'sub create y --customer acme --until 2020-01-01', wrong: /in the past/, fix: /30d/ },
  { typed: 'sub create acme-prod --customer acme', wrong: /"acme-prod" already/, fix: /another name/ },
  { typed: 'sub limit acme-prod --units-per-second lots', wrong: /a whole number above zero/, fix: /./ },
  { typed: 'sub limit acme-prod', wrong: /at least one limit/, fix: /--units-per-second 300/ },
  { typed: 'sub show acme-prd', wrong: /no subscription "acme-prd"/, fix: /sluice sub list/ },
  { typed: 'customer add Acme_Inc!', wrong: /use 1 to 63 of a-z/, fix: /./ },
  { typed: 'token issue acme-prod', wrong: /a subscription has one/, fix: /sluice token rotate acme-prod/ },
  { typed: 'shred set-destination acme-prod 127.0.0.1', wrong: /give a literal IP:PORT/, fix: /./ },
  { typed: 'shred listen 99999', wrong: /a number from 0 to 65535/, fix: /./ },
  { typed: 'usage --since yesterday', wrong: /a time span such as 7d/, fix: /./ },
  { typed: 'logs tail --level loud', wrong: /trace\|debug\|info/, fix: /sluice logs tail --help/ },
  { typed: 'docs operatin', wrong: /did you mean operating/, fix: /sluice docs/ },
  { typed: 'status', wrong: /no running Sluice answers/, fix: /sluice serve/ },
  { typed: 'restore nowhere.jsonl', wrong: /there is no backup/, fix: /sluice backup FILE/ },
  { typed: 'restore FOLDER/not-a-backup', wrong: /not a whole backup: line 1/, fix: /Nothing was changed/ },
  { typed: 'backup FOLDER/none/b.jsonl', wrong: /there is no folder/, fix: /mkdir -p/ },
  { typed: 'config check --config FOLDER/none.toml', wrong: /cannot be read/, fix: /sluice init --config/ },
  {
    typed: 'config check --config FOLDER/quotes.toml',
    wrong: /quotes\.toml:2:\d+ not TOML/,
    fix: /text stands in quotes/,
  },
  { typed: 'config check --config FOLDER/key.toml', wrong: /key\.toml:1:2 bundel.*did you mean bundle/, fix: /Mend/ },
  { typed: 'config check --config FOLDER/port.toml', wrong: /the port is above 65535/, fix: /Mend/ },
  {
    typed: 'config check --config FOLDER/public.toml',
    wrong: /public address 0\.0\.0\.0:8899 without TLS/,
    fix: /tls = /,
  },
  { typed: 'config check --config FOLDER/literal.toml', wrong: /secrets are given by reference/, fix: /Mend/ },
  { typed: 'config check --config FOLDER/mode.toml', wrong: /has mode 0644/, fix: /chmod 600/ },
  { typed: 'sub list --state FOLDER/nowhere', wrong: /there is no access store/, fix: /--state DIR/ },
]

const FILES: Readonly<Record<string, string>> = {
  'not-a-backup': '# A page\n',
  'quotes.toml': '[bundle.rpc]\nlisten = 127.0.0.1:8899\n',
  'key.toml': '[bundel.rpc]\nlisten = "127.0.0.1:8899"\n',
  'port.toml': '[bundle.rpc]\nlisten = "127.0.0.1:88999"\n',
  'public.toml': '[bundle.rpc]\nlisten = "0.0.0.0:8899"\n',
  'literal.toml': '[[upstreams.nodes]]\nname = "a"\nrpc = "https://a.example"\ncredential = "not a reference"\n',
  'mode.toml': '[[upstreams.nodes]]\nname = "a"\nrpc = "https://a.example"\ncredential = "file:open-secret"\n',
  'open-secret': 'x\n',
}

test('every mistake of an operator is answered with what is wrong and what to do', async () => {
  await using home = await temporaryFolder()
  for (const [name, text] of Object.entries(FILES)) writeFileSync(home.file(name), text)
  chmodSync(home.file('open-secret'), 0o644)
  const run = (line: string) => {
    const words = line.split(' ').map((word) => word.replace('FOLDER', home.path))
    const secret = words[1] === 'create' || words[0] === 'token' ? ['--print-token'] : []
    return sluiceHere([...words, ...secret], { SLUICE_STATE: home.file('state') })
  }
  for (const line of ['customer add acme', 'sub create acme-prod --customer acme']) {
    const done = await run(line)
    assert.equal(done.code, 0, done.stderr)
  }
  for (const { typed, wrong, fix } of MISTAKES) {
    const { code, stderr } = await run(typed)
    assert.notEqual(code, 0, typed)
    const [, said = '', advised = ''] = /^error: ([\s\S]*?)\n {2}fix: (.*)/.exec(stderr) ?? []
    assert.match(said, wrong, `${typed}: ${stderr}`)
    assert.match(advised, fix, `${typed}: ${stderr}`)
    assert.doesNotMatch(stderr, /\n {4}at /, `${typed}: no stack`)
  }
})
