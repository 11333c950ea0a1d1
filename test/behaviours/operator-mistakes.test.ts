import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'

/** Typing errors of an operator: each gets a message and a fix. */
type Mistake = { readonly typed: string; readonly code: number; readonly wrong: RegExp; readonly fix: RegExp }

const MISTAKES: readonly Mistake[] = [
  { typed: 'serv', code: 2, wrong: /unknown command "serv", did you mean "serve"/, fix: /Use "serve"/ },
  { typed: 'sub creat acme', code: 2, wrong: /did you mean "create"/, fix: /Use "create"/ },
  { typed: 'sub create y', code: 2, wrong: /--customer is required/, fix: /sluice sub create --help/ },
  {
    typed: 'sub list --jsn',
    code: 2,
    wrong: /unknown flag --jsn, did you mean "--json"/,
    fix: /sluice sub list --help/,
  },
  { typed: 'sub create y --customer acmee', code: 1, wrong: /did you mean "acme"/, fix: /sluice customer list/ },
  { typed: 'sub create y --customer acme --plan bild', code: 1, wrong: /there are starter/, fix: /sluice plan list/ },
  {
    typed: 'sub create y --customer acme --products bundel',
    code: 2,
    wrong: /did you mean "bundle"/,
    fix: /Products: /,
  },
  {
    typed: 'sub create y --customer acme --until tomorrow',
    code: 2,
    wrong: /such as 2027-01-31/,
    fix: /Correct the value named in the message/,
  },
  { typed: 'sub create y --customer acme --until 2020-01-01', code: 2, wrong: /in the past/, fix: /30d/ },
  { typed: 'sub create acme-prod --customer acme', code: 1, wrong: /"acme-prod" already/, fix: /another name/ },
  {
    typed: 'sub limit acme-prod --units-per-second lots',
    code: 2,
    wrong: /a number above zero, unlimited, or plan/,
    fix: /Correct the value named in the message/,
  },
  { typed: 'sub limit acme-prod', code: 2, wrong: /at least one limit/, fix: /--units-per-second 300/ },
  { typed: 'sub show acme-prd', code: 1, wrong: /no subscription "acme-prd"/, fix: /sluice sub list/ },
  {
    typed: 'customer add Acme_Inc!',
    code: 2,
    wrong: /use 1 to 63 of a-z/,
    fix: /Correct the value named in the message/,
  },
  { typed: 'token issue acme-prod', code: 1, wrong: /a subscription has one/, fix: /sluice token rotate acme-prod/ },
  {
    typed: 'shred set-destination acme-prod 127.0.0.1',
    code: 2,
    wrong: /give a literal IP:PORT/,
    fix: /Correct the value named in the message/,
  },
  {
    typed: 'shred listen 99999',
    code: 2,
    wrong: /a number from 0 to 65535/,
    fix: /Correct the value named in the message/,
  },
  {
    typed: 'usage --since yesterday',
    code: 2,
    wrong: /a time span such as 7d/,
    fix: /Correct the value named in the message/,
  },
  { typed: 'logs tail --level loud', code: 2, wrong: /trace\|debug\|info/, fix: /sluice logs tail --help/ },
  { typed: 'docs operatin', code: 1, wrong: /did you mean operating/, fix: /sluice docs/ },
  { typed: 'status', code: 69, wrong: /no running Sluice responds/, fix: /sluice serve/ },
  { typed: 'restore nowhere.jsonl', code: 1, wrong: /there is no backup/, fix: /sluice backup FILE/ },
  {
    typed: 'restore FOLDER/not-a-backup',
    code: 78,
    wrong: /not a complete backup: line 1/,
    fix: /Nothing was changed/,
  },
  { typed: 'backup FOLDER/none/b.jsonl', code: 1, wrong: /there is no folder/, fix: /mkdir -p/ },
  {
    typed: 'usage export --month 2027-01 --out FOLDER/not-a-backup',
    code: 1,
    wrong: /not-a-backup already exists/,
    fix: /Name a new file/,
  },
  {
    typed: 'usage export --month 2027-01 --out FOLDER/none/u.csv',
    code: 1,
    wrong: /there is no folder/,
    fix: /mkdir -p/,
  },
  {
    typed: 'localnet run --rpc-port 8899.5',
    code: 2,
    wrong: /"8899\.5" is not a port: give a whole number from 0 to 65535/,
    fix: /Correct the value named in the message/,
  },
  {
    typed: 'localnet run --slot-ms 200.5',
    code: 2,
    wrong: /"200\.5" is not a slot length: give a whole number from/,
    fix: /Correct the value named in the message/,
  },
  {
    typed: 'localnet run --tps many',
    code: 2,
    wrong: /"many" is not a rate: give a number from 0 to 1000/,
    fix: /Correct the value named in the message/,
  },
  { typed: 'config check --config FOLDER/none.toml', code: 78, wrong: /cannot be read/, fix: /sluice init --config/ },
  {
    typed: 'config check --config FOLDER/quotes.toml',
    code: 78,
    wrong: /quotes\.toml:2:\d+ not TOML/,
    fix: /text must be in quotes/,
  },
  {
    typed: 'config check --config FOLDER/twice.toml',
    code: 78,
    wrong: /twice\.toml:3:\d+ not TOML.*redefine.*; the first is in line 1/,
    fix: /under the header that is already there/,
  },
  {
    typed: 'config check --config FOLDER/key.toml',
    code: 78,
    wrong: /key\.toml:1:2 bundel.*did you mean bundle/,
    fix: /Correct the lines/,
  },
  {
    typed: 'config check --config FOLDER/port.toml',
    code: 78,
    wrong: /the port is above 65535/,
    fix: /Correct the lines/,
  },
  {
    typed: 'config check --config FOLDER/public.toml',
    code: 78,
    wrong: /public address 0\.0\.0\.0:8899 without TLS/,
    fix: /tls = /,
  },
  {
    typed: 'config check --config FOLDER/literal.toml',
    code: 78,
    wrong: /secrets are given by reference/,
    fix: /Correct the lines/,
  },
  { typed: 'config check --config FOLDER/mode.toml', code: 78, wrong: /has mode 0644/, fix: /chmod 600/ },
  {
    typed: 'config check --config FOLDER/private.toml',
    code: 78,
    wrong: /node a, rpc: the address is private/,
    fix: /allowPrivate = true in the table of this node, or upstreams\.allowPrivate = true for all nodes/,
  },
  { typed: 'sub list --state FOLDER/nowhere', code: 1, wrong: /there is no access store/, fix: /--state DIR/ },
]

const FILES: Readonly<Record<string, string>> = {
  'not-a-backup': '# A page\n',
  'quotes.toml': '[bundle.rpc]\nlisten = 127.0.0.1:8899\n',
  'twice.toml': '[log]\nlevel = "info"\n[log]\nlevel = "warn"\n',
  'key.toml': '[bundel.rpc]\nlisten = "127.0.0.1:8899"\n',
  'port.toml': '[bundle.rpc]\nlisten = "127.0.0.1:88999"\n',
  'public.toml': '[bundle.rpc]\nlisten = "0.0.0.0:8899"\n',
  'literal.toml': '[[upstreams.nodes]]\nname = "a"\nrpc = "https://a.example"\ncredential = "not a reference"\n',
  'mode.toml': '[[upstreams.nodes]]\nname = "a"\nrpc = "https://a.example"\ncredential = "file:open-secret"\n',
  'private.toml':
    '[[upstreams.nodes]]\nname = "a"\nrpc = "http://10.0.0.7:8899"\n[[upstreams.nodes]]\nname = "b"\nrpc = "http://10.0.0.8:8899"\nallowPrivate = true\n',
  'open-secret': 'x\n',
}

test('every operator error has a message, a fix and its exit code', async () => {
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
  const objections: string[] = []
  for (const { typed, code: wanted, wrong, fix } of MISTAKES) {
    const { code, stderr } = await run(typed)
    const [, message = '', advised = ''] = /^error: ([\s\S]*?)\n {2}fix: (.*)/.exec(stderr) ?? []
    const isGood = code === wanted && wrong.test(message) && fix.test(advised) && !/\n {4}at /.test(stderr)
    if (!isGood) objections.push(`${typed}: exited with ${code} and printed: ${stderr}`)
  }
  assert.deepEqual(objections, [])
})
