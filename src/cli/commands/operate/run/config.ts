import { ServiceError } from '../../../../core/error.ts'
import { isSecretName } from '../../../../core/redact.ts'
import type { ConfigOrigin } from '../../../../platform/config/file.ts'
import { isSecretRef } from '../../../../platform/config/secret-ref.ts'
import { checkListenerFiles } from '../../../../processes/compose/config/check-listeners.ts'
import { type ConfigSection, configJsonSchema } from '../../../../processes/compose/config/config.ts'
import { checkIdentity, checkSources, secretRefsOf } from '../../../../processes/compose/config/faults.ts'
import { STANDALONE_SECTIONS, servedSections } from '../../../../processes/compose/config/served.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { checkSecrets, IN_PROCESS } from '../../../doctor/secrets.ts'
import { checkNodeAddresses } from '../../../doctor/upstreams.ts'
import { findSettings, findSettingsSource, type SettingsSource, settingsFrom } from '../../../find-settings.ts'
import { alignColumns, printJson, write } from '../../../output/print.ts'

type CheckFlags = CommonFlags & { readonly for?: 'serve' | keyof typeof STANDALONE_SECTIONS }

export async function checkConfig(this: CliContext, flags: CheckFlags): Promise<void> {
  const source = await findSettingsSource(this, flags)
  const { config, loaded } = await settingsFrom(source)
  const sections = sectionsFor(flags, source) ?? servedSections(config)
  const findings = [
    ...(await checkSecrets({ config, loaded, sections }, source)),
    ...(await checkListenerFiles(config, loaded.folder, sections)),
    ...checkNodeAddresses(config),
    ...checkSources(config, sections),
    ...checkIdentity(config, loaded.folder, sections),
  ]
  const faults = findings.filter((finding) => finding.level !== 'ok').filter(({ level }) => level === 'bad')
  if (faults.length > 0) {
    throw new ServiceError('config-invalid', faults.map(({ message }) => message).join('\n'), {
      fix: faults.map(({ fix }) => fix).join('\n       '),
    })
  }
  if (flags.json === true) return printJson(this, { ok: true, file: loaded.file ?? null })
  for (const key of secretRefsOf({ config, loaded }, Object.keys(config) as ConfigSection[]).keys())
    if (!sections.includes(key.split('.')[0] as ConfigSection))
      write(this, `not checked: ${key}: this process does not use it`)
  for (const { message } of findings) if (message.endsWith(IN_PROCESS)) write(this, `not checked: ${message}`)
  write(this, loaded.file === undefined ? 'no config file: all defaults apply' : `${loaded.file} is valid`)
}

/** The sections of the process of one service that is to start; undefined for `serve`. */
function sectionsFor({ for: named }: CheckFlags, { running }: SettingsSource): readonly ConfigSection[] | undefined {
  if (named === undefined) return running?.parts
  return named === 'serve' ? undefined : STANDALONE_SECTIONS[named]
}

export async function showConfig(this: CliContext, flags: CommonFlags): Promise<void> {
  const { loaded } = await findSettings(this, flags)
  const rows = loaded.entries().map(({ path, value, origin }) => ({
    key: path.join('.'),
    // References to secrets are masked too, so that the output can be shared. No secret is a number or a switch, such as `queryToken`.
    value:
      typeof value === 'string' && (path.some((part) => isSecretName(String(part))) || isSecretRef(value))
        ? '[secret]'
        : value,
    origin,
  }))
  if (flags.json === true) {
    return printJson(
      this,
      rows.map(({ key, value, origin }) => ({ key, value: value ?? null, ...origin })),
    )
  }
  this.process.stdout.write(
    alignColumns(
      rows
        .filter(({ value }) => value !== undefined)
        .map(({ key, value, origin }) => [key, JSON.stringify(value), originWords(origin)]),
    ),
  )
}

export async function printConfigSchema(this: CliContext, _flags: CommonFlags): Promise<void> {
  this.process.stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
}

function originWords(origin: ConfigOrigin): string {
  switch (origin.from) {
    case 'env':
      return `environment ${origin.variable}`
    case 'file':
      return `${origin.file}:${origin.line}:${origin.column}`
    default:
      return origin.from
  }
}
