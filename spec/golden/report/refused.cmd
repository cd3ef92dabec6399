while read -r options; do
  microscope report small.usprof $options
  echo "status $?"
done <<LIST
--invert
--invert --tree --base small.usprof
--lines --fold-inlines
--share
--focus f --by cpu
--focus f --samples
--by cpu --tree
--by cpu --base small.usprof
--by line --lines
--by cpu --samples
--by cpu --sort total
--samples --tree
--samples --base small.usprof
--samples --collapse-recursion
--samples --drop f
--samples --fold-inlines
--samples --sort self
--samples --min-percent 1
--flame page.html --format csv
--sort size
--min-percent 101
LIST
