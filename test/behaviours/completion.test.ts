import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { CLI, temporaryFolder } from '../support/cli/run.ts'

/** Completions of a real shell after `sluice sub cre` and `sluice sub create --cus`. */
const QUESTIONS = {
  bash: `source <(sluice completion bash)
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _sluice_complete; printf '%s\\n' "\${COMPREPLY[@]}"; }
ask sluice sub cre; ask sluice sub create --cus`,
  zsh: `compdef() { :; }; compadd() { shift; print -l -- $@; }
eval "$(sluice completion zsh)"
words=(sluice sub cre); CURRENT=3; _sluice
words=(sluice sub create --cus); CURRENT=4; _sluice`,
  fish: `sluice completion fish | source
complete -C 'sluice sub cre' ; complete -C 'sluice sub create --cus'`,
} as const

for (const [shell, script] of Object.entries(QUESTIONS)) {
  test(`completion works in ${shell}`, async () => {
    await using home = await temporaryFolder()
    writeFileSync(
      home.file('sluice'),
      `#!/bin/sh\nexec "${process.execPath}" --disable-warning=ExperimentalWarning "${CLI}" "$@"\n`,
    )
    chmodSync(home.file('sluice'), 0o755)
    const env = { ...process.env, PATH: `${home.path}:${process.env['PATH']}`, HOME: home.path }
    const flags = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] }[shell] ?? []
    const { stdout, stderr } = spawnSync(shell, [...flags, '-c', script], { env, cwd: home.path, encoding: 'utf8' })
    assert.deepEqual(stdout.trim().split(/\s+/), ['create', '--customer'], stderr)
  })
}
