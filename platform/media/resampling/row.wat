;; An image is resampled row by row: bilinear, in integers.
;; Built by `deno task kernels`.
(module
  ;; Addresses 0 to 31: for each channel, the scale and then the offset of floats.
  (memory (export "memory") 1)

  ;; A row of pixels with as many columns as the new image: four i32 for each, weighted by 2048.
  (func (export "columns")
    (param $from i32)
    ;; For each new pixel: the offsets of its two columns in bytes, their weights out of 2048 as i16.
    (param $column i32) (param $end i32)
    (param $out i32)

    (loop $pixel
      ;; The bytes of both columns alternate, so each sum of two products is one lane.
      (v128.store (local.get $out)
        (i32x4.dot_i16x8_s
          (v128.load32_splat offset=8 (local.get $column))
          (i16x8.extend_low_i8x16_u
            (i8x16.shuffle 0 16 1 17 2 18 3 19 0 16 1 17 2 18 3 19
              (v128.load32_zero
                (i32.add (local.get $from) (i32.load (local.get $column))))
              (v128.load32_zero
                (i32.add (local.get $from) (i32.load offset=4 (local.get $column))))))))
      (local.set $out (i32.add (local.get $out) (i32.const 16)))
      (local.set $column (i32.add (local.get $column) (i32.const 12)))
      (br_if $pixel (i32.lt_u (local.get $column) (local.get $end)))))

  ;; A new row, interpolated between two rows that `columns` wrote.
  (func (export "row")
    ;; The two rows, where the first ends, and the second one's weight out of 2048.
    (param $top i32) (param $bottom i32) (param $end i32) (param $weight i32)
    ;; Where the row goes. Up to 3 values beyond its last one are written, too.
    (param $out i32) (param $channels i32)
    ;; Bytes from one channel to the next; 0 if the channels of a pixel are neighbours.
    (param $plane i32)
    (param $is_float i32)

    (local $weight_top v128) (local $weight_bottom v128)
    (local $value v128) (local $scale v128) (local $offset v128)

    (local.set $weight_top (i32x4.splat (i32.sub (i32.const 2048) (local.get $weight))))
    (local.set $weight_bottom (i32x4.splat (local.get $weight)))
    (local.set $scale (v128.load (i32.const 0)))
    (local.set $offset (v128.load (i32.const 16)))

    (loop $pixel
      (local.set $value
        (i32x4.add
          (i32x4.mul (local.get $weight_top) (v128.load (local.get $top)))
          (i32x4.mul (local.get $weight_bottom) (v128.load (local.get $bottom)))))

      (if (local.get $is_float)
        (then
          (local.set $value
            (f32x4.add (local.get $offset)
              (f32x4.mul (local.get $scale) (f32x4.convert_i32x4_s (local.get $value)))))
          (if (local.get $plane)
            (then
              (v128.store32_lane 0 (local.get $out) (local.get $value))
              (if (i32.gt_u (local.get $channels) (i32.const 1))
                (then
                  (v128.store32_lane 1
                    (i32.add (local.get $out) (local.get $plane)) (local.get $value))
                  (v128.store32_lane 2
                    (i32.add (local.get $out) (i32.shl (local.get $plane) (i32.const 1)))
                    (local.get $value))))
              (if (i32.gt_u (local.get $channels) (i32.const 3))
                (then
                  (v128.store32_lane 3
                    (i32.add (local.get $out) (i32.mul (local.get $plane) (i32.const 3)))
                    (local.get $value))))
              (local.set $out (i32.add (local.get $out) (i32.const 4))))
            (else
              (v128.store (local.get $out) (local.get $value))
              (local.set $out
                (i32.add (local.get $out) (i32.shl (local.get $channels) (i32.const 2)))))))
        (else
          ;; Rounds, and shifts out the 22 bits of the weights.
          (local.set $value
            (i32x4.shr_u
              (i32x4.add (local.get $value) (i32x4.splat (i32.const 2097152)))
              (i32.const 22)))
          (local.set $value (i16x8.narrow_i32x4_u (local.get $value) (local.get $value)))
          (local.set $value (i8x16.narrow_i16x8_u (local.get $value) (local.get $value)))
          (if (local.get $plane)
            (then
              (v128.store8_lane 0 (local.get $out) (local.get $value))
              (if (i32.gt_u (local.get $channels) (i32.const 1))
                (then
                  (v128.store8_lane 1
                    (i32.add (local.get $out) (local.get $plane)) (local.get $value))
                  (v128.store8_lane 2
                    (i32.add (local.get $out) (i32.shl (local.get $plane) (i32.const 1)))
                    (local.get $value))))
              (if (i32.gt_u (local.get $channels) (i32.const 3))
                (then
                  (v128.store8_lane 3
                    (i32.add (local.get $out) (i32.mul (local.get $plane) (i32.const 3)))
                    (local.get $value))))
              (local.set $out (i32.add (local.get $out) (i32.const 1))))
            (else
              (v128.store32_lane 0 (local.get $out) (local.get $value))
              (local.set $out (i32.add (local.get $out) (local.get $channels)))))))

      (local.set $bottom (i32.add (local.get $bottom) (i32.const 16)))
      (local.set $top (i32.add (local.get $top) (i32.const 16)))
      (br_if $pixel (i32.lt_u (local.get $top) (local.get $end))))))
