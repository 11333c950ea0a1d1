import type { Page, PlanRecord, ProductRecord } from '../../client/wire.ts'
import type { FieldSpec } from './dialog-spec.ts'
import { useLoad } from './load.ts'

const CHARACTERS_MAX = 200

type FieldProps = { spec: FieldSpec; value: string; onChange: (value: string) => void }

/** A field of a form with its label and hint. */
export function Field({ spec: given, value, onChange }: FieldProps) {
  const spec = useOptions(given, value)
  const id = `field-${spec.name}`
  const hintId = spec.hint === undefined ? undefined : `${id}-hint`
  if (spec.kind === 'checks') return <Checks spec={spec} value={value} onChange={onChange} />
  if (spec.kind === 'check') {
    return (
      <p class="field">
        <label class="check">
          <input
            id={id}
            type="checkbox"
            checked={value === 'yes'}
            onChange={(event) => onChange(event.currentTarget.checked ? 'yes' : '')}
          />
          {spec.label}
        </label>
        {spec.hint && <span class="hint">{spec.hint}</span>}
      </p>
    )
  }
  const common = { id, name: spec.name, required: spec.isRequired === true, 'aria-describedby': hintId }
  return (
    <p class="field">
      <label for={id}>{spec.label}</label>
      {spec.kind === 'select' ? (
        <select {...common} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {(spec.options ?? []).map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : spec.kind === 'long-text' ? (
        <textarea
          {...common}
          rows={3}
          maxLength={spec.charactersMax ?? 2000}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      ) : spec.kind === 'date' ? (
        <input {...common} type="date" value={value} onInput={(event) => onChange(event.currentTarget.value)} />
      ) : (
        <input
          {...common}
          type="text"
          maxLength={spec.charactersMax ?? CHARACTERS_MAX}
          placeholder={spec.placeholder}
          autoComplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
      {spec.hint && (
        <span class="hint" id={hintId}>
          {spec.hint}
        </span>
      )}
    </p>
  )
}

/** The field with the options of the running process, as soon as they are loaded. What is chosen stays among them. */
function useOptions(spec: FieldSpec, value: string): FieldSpec {
  const plans = useLoad<Page<PlanRecord>>('planList', { isOff: spec.source !== 'plans' })
  const products = useLoad<Page<ProductRecord>>('products', { isOff: spec.source !== 'products' })
  if (spec.source === 'plans') {
    const names = (plans.value.value?.items ?? []).map(({ name }) => name)
    const all = names.includes(value) ? names : [value, ...names]
    return { ...spec, options: all.map((name) => ({ value: name, label: name })) }
  }
  const offered = products.value.value?.items.filter((product) => product.is_offered).map(({ key }) => key)
  if (spec.source !== 'products' || offered === undefined) return spec
  return { ...spec, options: (spec.options ?? []).filter((option) => offered.includes(option.value)) }
}

function Checks({ spec, value, onChange }: FieldProps) {
  const chosen = value === '' ? [] : value.split(',')
  return (
    <fieldset class="field">
      <legend>{spec.label}</legend>
      {(spec.options ?? []).map((option) => (
        <label key={option.value} class="check">
          <input
            type="checkbox"
            name={spec.name}
            value={option.value}
            checked={chosen.includes(option.value)}
            onChange={(event) => {
              const others = chosen.filter((one) => one !== option.value)
              onChange((event.currentTarget.checked ? [...others, option.value] : others).join(','))
            }}
          />
          {option.label}
        </label>
      ))}
      {spec.hint && <span class="hint">{spec.hint}</span>}
    </fieldset>
  )
}
