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
