// case: RGX-01
// expect: limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
return ("x".repeat(30000) + "y").replace(/(x+x+)+z/g, "").length;
