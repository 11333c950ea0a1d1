import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

const TYPING_MS = 200
const CHARACTERS_MAX = 100

/** A text that filters a list, used when the user stops typing. */
export function TextFilter({
  value,
  label,
  onChange,
}: {
  value: string
  label: string
  onChange: (text: string) => void
}) {
  const text = useSignal(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    text.value = value
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <input
      class="filter"
      type="search"
      aria-label={label}
      placeholder={label}
      autoComplete="off"
      spellcheck={false}
      maxLength={CHARACTERS_MAX}
      value={text.value}
      onInput={(event) => {
        const typed = event.currentTarget.value
        text.value = typed
        clearTimeout(timer.current)
        timer.current = setTimeout(() => onChange(typed.trim()), TYPING_MS)
      }}
    />
  )
}

type SwitchProps<Name extends string> = {
  label: string
  options: readonly { readonly value: Name; readonly label: string }[]
  value: Name
  onChange: (value: Name) => void
}

/** One of a few values. */
export function Switch<Name extends string>({ label, options, value, onChange }: SwitchProps<Name>) {
  return (
    <div class="switch" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </div>
  )
}
