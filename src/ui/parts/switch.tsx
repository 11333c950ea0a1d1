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
